// YAML text to JSON values. For use in .cc files of kube/ only.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "kube/document_reader.h"

namespace volumed {

// Appends the documents of `text`, whose first line is the `first_line`th of its file; in place of
// all of them the first error, if one of them is no YAML. REQUIRES: it is UTF-8.
// Threads: any. Blocks: no. Errors: in each document.
void ReadYaml(std::string_view text, size_t first_line, std::vector<RawDocument>& documents);

// "line 3: <reason>".
std::string AtLine(size_t line, std::string_view reason);

}  // namespace volumed
