// Parses YAML text into JSON values. For use in .cc files of kube/ only.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "kube/document_reader.h"

namespace volumed {

// Appends the documents of `text`, whose first line is line `first_line` of its file. If one of
// them is not YAML, the first error is appended in place of all of them. REQUIRES: `text` is UTF-8.
// Threads: any. Blocks: no. Errors: in each document. Documents that are null are left out.
void ReadYaml(std::string_view text, size_t first_line, std::vector<RawDocument>& documents);

// "line 3: <reason>". Lines are counted from 1.
std::string AtLine(size_t line, std::string_view reason);

}  // namespace volumed
