// A strict reader of the Prometheus text format, for tests: anything that a scraper might refuse or
// take two ways is a problem.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace volumed {

struct ParsedExposition {
  std::map<std::string, std::string> types;   // family -> type
  std::map<std::string, std::string> values;  // series as written ("name{labels}") -> value
  std::map<std::string, std::set<std::string>> label_names;  // family -> labels, without "le"
  std::vector<std::string> problems;
};

// Source: prometheus.io/docs/instrumenting/exposition_formats.
ParsedExposition ParseExposition(std::string_view text);

}  // namespace volumed
