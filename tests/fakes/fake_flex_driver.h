// FakeFlexDriver: the executable of a flexVolume driver on a FakeKernel, for an array whose disks
// show up when they are attached. What it remembers it keeps in files of the kernel's world, so
// that it outlives agents and is copied with the world.
#pragma once

#include <string>

#include "fakes/fake_kernel.h"

namespace volumed {

inline constexpr char kFakeFlexDriver[] = "test.io/flex";
inline constexpr char kFakeFlexExecutable[] = "/exec/test.io~flex/flex";

// A volume's option "disk" names its device, which must have been added to the kernel. It attaches,
// waits, says whether, and detaches; the rest it does not support.
void InstallFakeFlexDriver(FakeKernel& kernel);
bool IsFlexAttached(const FakeKernel& kernel, const std::string& volume);
// Of the options that it was given; "" if there is none.
std::string FlexOption(const std::string& options, const std::string& key);

}  // namespace volumed
