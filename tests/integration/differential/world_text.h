// What a kernel answers, and what it leaves behind, as text that can be compared. What must differ
// between the real and the fake kernel is left out or renamed here, and nowhere else: device, inode
// and mount numbers, numbers of peer groups, names of payload directories, the order of mounts that
// do not cover each other.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

std::string ResultText(const Result<AnyAnswer>& result, const std::string& below);

// The mounts at or below a path.
std::string MountsText(const std::vector<MountEntry>& mounts, const std::string& below);

// The real tree, in the format of FakeKernel::DumpTree.
std::string RealTreeText(const std::string& root);

std::string SortedLines(const std::string& text);

// "..2026_01_31_10_00_00.1234" becomes "..<version>"; long texts are cut.
std::string Normalised(const std::string& text);

}  // namespace volumed
