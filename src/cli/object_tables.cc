#include "cli/object_tables.h"

#include <string>
#include <utility>
#include <vector>

namespace volumed {
namespace {

// Which columns a kind has between NAME and AGE.
struct Columns {
  bool name_space = false;
  bool type = false;
  bool data = false;
};

Columns ColumnsOf(const CliNoun& noun, bool all_namespaces) {
  const bool secret = noun.plural == kSecretNoun.plural;
  const bool config_map = noun.plural == kConfigMapNoun.plural;
  const bool snapshot = noun.plural == kVolumeSnapshotNoun.plural;
  return {.name_space = all_namespaces && (secret || config_map || snapshot),
          .type = secret,
          .data = secret || config_map};
}

using Row = std::vector<std::string>;

// `first` has the cells up to DATA, `own` those that only this kind has, `last` AGE and SOURCE.
Row MakeRow(const Columns& columns, bool wide, Row first, Row own, Row last) {
  const bool shown[] = {columns.name_space, true, columns.type, columns.data};
  Row row;
  for (size_t i = 0; i < first.size(); ++i) {
    if (shown[i]) row.push_back(std::move(first[i]));
  }
  for (std::string& cell : own) row.push_back(std::move(cell));
  if (!wide) last.pop_back();
  for (std::string& cell : last) row.push_back(std::move(cell));
  return row;
}

}  // namespace

void PrintObjects(const v1::ListObjectsResponse& objects, const CliNoun& noun, OutputFormat format,
                  bool all_namespaces, int64_t now, std::ostream& out) {
  if (IsForPrograms(format)) return PrintMessage(objects, format, out);
  const Columns columns = ColumnsOf(noun, all_namespaces);
  const bool wide = format == OutputFormat::kWide;
  const Row own(objects.columns().begin(), objects.columns().end());
  std::vector<Row> rows = {
      MakeRow(columns, wide, {"NAMESPACE", "NAME", "TYPE", "DATA"}, own, {"AGE", "SOURCE"})};
  for (const v1::ListedObject& listed : objects.listed()) {
    const v1::ObjectRef& object = listed.object();
    const bool is_refused = IsRefused(listed.phase());
    Row cells(listed.cells().begin(), listed.cells().end());
    if (is_refused) cells.assign(own.size(), "-");
    rows.push_back(MakeRow(
        columns, wide,
        {object.namespace_(), object.name() + (is_refused ? " (" + listed.phase() + ")" : ""),
         listed.type(), is_refused ? "-" : std::to_string(listed.keys())},
        std::move(cells), {FormatCreation(listed.created_unix_ms(), now), listed.source()}));
  }
  PrintTable(rows, out);
  for (const v1::ListedObject& listed : objects.listed()) {
    const v1::ObjectRef& object = listed.object();
    const std::string in = object.namespace_().empty() ? "" : object.namespace_() + "/";
    PrintRefusal(in + object.name(), listed.phase(), listed.reason(), out);
  }
  if (objects.not_shown() > 0) out << "and " << objects.not_shown() << " more\n";
}

}  // namespace volumed
