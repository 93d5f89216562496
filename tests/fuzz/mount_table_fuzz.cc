// Lines of mountinfo. A line is read or refused, never overlooked: through a mount that nobody
// knows of somebody else's files would be deleted. What was read says the same when it is written
// again, and each question gets what a look at the whole table gives.
#include "os/mount_table.h"

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>

#include "base/strings.h"
#include "fuzz/fuzz.h"

namespace volumed::mount_table_fuzz {
namespace {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// By what libmount knows the format; it guesses by the first line, and the kernel's always has it.
constexpr std::string_view kFirstLine = "1 0 0:1 / / rw - rootfs rootfs rw\n";

Result<std::vector<MountEntry>> Parse(std::string text) {
  const std::unique_ptr<std::FILE, FileCloser> stream(fmemopen(text.data(), text.size(), "r"));
  FUZZ_CHECK(stream != nullptr);
  return ParseMountTable(stream.get(), "mountinfo");
}

auto Fields(const MountEntry& entry) {
  return std::tie(entry.mount_id, entry.parent_id, entry.device_major, entry.device_minor,
                  entry.root, entry.mount_point, entry.options, entry.propagation, entry.fs_type,
                  entry.source, entry.super_options);
}

bool Same(const std::vector<MountEntry>& a, const std::vector<MountEntry>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const MountEntry& x, const MountEntry& y) { return Fields(x) == Fields(y); });
}

// Source: the kernel's fs/proc_namespace.c (mangle).
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    // The kernel leaves carriage returns as they are, and libmount cuts them off the end of a line.
    if (std::string_view(" \t\n\r\\#").find(c) == std::string_view::npos) {
      escaped += c;
      continue;
    }
    char octal[8];
    std::snprintf(octal, sizeof octal, "\\%03o", static_cast<unsigned>(c));
    escaped += octal;
  }
  return escaped;
}

std::string LineOf(const MountEntry& entry) {
  const auto number = [](uint64_t id) { return std::to_string(static_cast<int>(id)); };
  std::string line = number(entry.mount_id) + " " + number(entry.parent_id) + " " +
                     std::to_string(entry.device_major) + ":" + std::to_string(entry.device_minor) +
                     " " + Escaped(entry.root) + " " + Escaped(entry.mount_point) + " " +
                     Escaped(Join(entry.options, ",")) + " ";
  for (const std::string& field : entry.propagation) line += field + " ";
  return line + "- " + Escaped(entry.fs_type) + " " + Escaped(entry.source) + " " +
         Escaped(Join(entry.super_options, ",")) + "\n";
}

// What the kernel never writes, and this could not write so that it is read again.
bool HasGaps(const MountEntry& entry) {
  return entry.root.empty() || entry.mount_point.empty() || entry.options.empty() ||
         entry.fs_type.empty() || entry.source.empty() || entry.super_options.empty();
}

void CheckWrittenAgain(const std::vector<MountEntry>& entries) {
  if (std::any_of(entries.begin(), entries.end(), HasGaps)) return;
  std::string text;
  for (const MountEntry& entry : entries) text += LineOf(entry);
  const Result<std::vector<MountEntry>> again = Parse(text);
  FUZZ_CHECK(again.ok());
  FUZZ_CHECK(Same(*again, entries));
}

void CheckQuestion(const MountSnapshot& table, const ListMounts& question) {
  if (const Status status = CheckMountQuestion(question); !status.ok()) {
    return fuzz::CheckError(status.error());
  }
  FUZZ_CHECK(Same(table.Find(question), SelectMounts(table.entries(), question)));
}

void CheckTable(const MountSnapshot& table) {
  std::set<uint64_t> ids;
  for (const MountEntry& entry : table.entries()) {
    ids.insert(entry.mount_id);
    FUZZ_CHECK(table.FindById(entry.mount_id) != nullptr);
    const MountEntry* const top = table.FindTop(entry.mount_point);
    FUZZ_CHECK(top == nullptr || top->mount_point == entry.mount_point);
    CheckQuestion(table, {.below = entry.mount_point});
    CheckQuestion(table, {.around = entry.mount_point});
    CheckQuestion(table, {.showing = FilesystemPart{entry.device_major, entry.device_minor, ""}});
    CheckQuestion(table, {.showing = PlaceOf(entry).part});
    if (entry.mount_point.starts_with('/')) {
      FUZZ_CHECK(table.FindCovering(entry.mount_point + "/not/there") != nullptr ||
                 table.FindTop("/") == nullptr);
    }
  }
  if (ids.size() == table.entries().size()) FUZZ_CHECK(DiffMounts(table, table).empty());
}

// A line that holds something: what is blank, and what is a remark, the kernel does not write.
size_t CountLines(std::string_view text) {
  size_t lines = 0;
  while (const std::optional<std::string_view> line = fuzz::TakeLine(text)) {
    const size_t first = line->find_first_not_of(" \t\r\v\f");
    lines += first != std::string_view::npos && (*line)[first] != '#' ? 1 : 0;
  }
  return lines;
}

}  // namespace

FUZZ_TARGET(mount_table)(const uint8_t* data, size_t size) {
  if (fuzz::TextOf(data, size).find('\0') != std::string_view::npos) return 0;  // ends no C string
  const std::string text = std::string(kFirstLine) + std::string(fuzz::TextOf(data, size));
  const Result<std::vector<MountEntry>> entries = Parse(text);
  if (!entries.ok()) {
    fuzz::CheckError(entries.error());
    return 0;
  }
  FUZZ_CHECK(entries->size() == CountLines(text));
  CheckWrittenAgain(*entries);
  CheckTable(MountSnapshot(*entries));
  return 0;
}

}  // namespace volumed::mount_table_fuzz
