// Takes what must not be seen, as passwords, out of what a program printed that was given it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace volumed {

// The text with `in_its_place` for each stretch that belongs to any of these values. All of them
// are looked for in the text as it came: of two that overlap, or of which one is a part of the
// other, nothing is left over. An empty value is not looked for. Pure; threads: any.
std::string WithoutValues(std::string_view text, const std::vector<std::string>& values,
                          std::string_view in_its_place);

}  // namespace volumed
