// Qualified names: "[<DNS subdomain>/]<name>", the form of plugin names.
// Source: kubernetes staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go@v1.36.2
// (IsQualifiedName); the reasons are its words.
//
// Threads: any. Blocks: never.
#pragma once

#include <string>
#include <vector>

namespace volumed {

// Why `value` is no qualified name; empty when it is one.
std::vector<std::string> QualifiedNameProblems(const std::string& value);

}  // namespace volumed
