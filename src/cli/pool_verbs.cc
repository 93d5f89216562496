// The verb pool: the pools' volumes, and PersistentVolumes of storage that is there already.
#include <iostream>
#include <string>
#include <vector>

#include "cli/calls.h"
#include "cli/object_kinds.h"
#include "cli/snapshot_tables.h"

#include "base/byte_text.h"

namespace volumed {
namespace {

struct PoolImportWords {
  std::string source, pool, pv_name;
  int64_t size_bytes = 0;
  bool yes = false;
};

// What is for people goes to stderr: what is left can be applied as it is.
void SayImported(const v1::ImportVolumeResponse& found, std::ostream& out) {
  out << found.kind() << " of " << FormatBytes(found.size_bytes()) << ", " << found.volume_mode();
  if (!found.fs_type().empty()) out << ", " << found.fs_type();
  if (!found.fs_uuid().empty()) out << " " << found.fs_uuid();
  out << "\n" << found.deed() << "\n";
  for (const std::string& note : found.notes()) out << "note: " << note << "\n";
  if (found.to_do()) {
    out << "nothing was done yet: --yes does it, and then the PersistentVolume has its handle:\n";
    return;
  }
  if (!found.volume().empty()) out << "volume " << found.volume() << "\n";
  out << "its PersistentVolume, for `volumectl apply -f -`:\n";
}

ExitCode RunPoolImport(const CliContext& context, const PoolImportWords& words) {
  v1::ImportVolumeRequest request;
  request.set_source(words.source);
  request.set_pool(words.pool);
  request.set_pv_name(words.pv_name);
  request.set_size_bytes(words.size_bytes);
  request.set_yes(words.yes);
  v1::ImportVolumeResponse response;
  const ExitCode code = CallAndSay(context, &Stub::ImportVolume, request, &response, "");
  if (code != kExitOk) return code;
  if (IsForPrograms(context.format)) {
    PrintMessage(response, context.format, std::cout);
    return kExitOk;
  }
  SayImported(response, std::cerr);
  // Without its handle it is to be read, and not to be applied.
  (response.to_do() ? std::cerr : std::cout) << response.manifest() << "\n";
  return kExitOk;
}

void DeclarePoolImport(CLI::App& verb, PoolImportWords& words) {
  verb.add_option("source", words.source,
                  "a directory, an image file, a logical volume (/dev/VG/LV), or DRIVER^HANDLE")
      ->required()
      ->type_name("FILE");
  verb.add_option("--pool", words.pool,
                  "in which it becomes a volume; default: of an image the one on whose filesystem "
                  "it lies, and nothing else becomes one")
      ->type_name("POOL");
  verb.add_option("--pv-name", words.pv_name,
                  "of the PersistentVolume; default: one that follows from the source");
  verb.add_option("--size", words.size_bytes,
                  "of a CSI volume, or of a directory; with --pool a directory needs it, else the "
                  "default is what the directory has in it")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(CLI::PositiveNumber)
      ->type_name("BYTES");
  verb.add_flag("--yes", words.yes, "do it; without it nothing is done but to look");
}

struct PoolDeleteWords {
  std::vector<std::string> ids;
  bool abandoned = false;
};

// The exit code is that of the last failure.
ExitCode RunPoolDelete(const CliContext& context, const PoolDeleteWords& words) {
  ExitCode worst = kExitOk;
  for (const std::string& id : words.ids) {
    v1::DeletePoolVolumeRequest request;
    request.set_id(id);
    request.set_abandoned(words.abandoned);
    v1::DeletePoolVolumeResponse response;
    const ExitCode code = CallAndSay(context, &Stub::DeletePoolVolume, request, &response,
                                     "volume " + id + " deleted");
    if (code == kExitUnreachable || code == kExitForbidden) return code;
    if (code != kExitOk) worst = code;
    if (!response.warning().empty()) std::cerr << "note: " << response.warning() << "\n";
  }
  return worst;
}

}  // namespace

ExitCode GetPools(const CliContext& context, const std::string& name) {
  v1::GetPoolsRequest request;
  request.set_name(name);
  v1::GetPoolsResponse response;
  const ExitCode code = CallAndSay(context, &Stub::GetPools, request, &response, "");
  if (code != kExitOk) return code;
  if (!name.empty() && response.pools().empty()) return ReportNone(context, "pool", name, false);
  PrintPools(response, context.format, std::cout);
  return kExitOk;
}

ExitCode GetPoolVolumes(const CliContext& context, const std::string& id) {
  v1::GetPoolVolumesRequest request;
  request.set_id(id);
  v1::GetPoolVolumesResponse response;
  const ExitCode code = CallAndSay(context, &Stub::GetPoolVolumes, request, &response, "");
  if (code != kExitOk) return code;
  if (!id.empty() && response.volumes().empty()) {
    return ReportNone(context, kPoolVolumeNoun.singular, id, false);
  }
  PrintPoolVolumes(response, context.format, std::cout);
  return kExitOk;
}

void AddPoolVerbs(const Verbs& verbs) {
  const Verbs pool =
      verbs.Group("pool", "the pools of this node; `get pools` and `get pool-volumes` list them");
  pool.Add<PoolImportWords>("import",
                            "print the PersistentVolume of storage that is there already, without "
                            "copying it; a check of its filesystem may need --request-timeout",
                            DeclarePoolImport, RunPoolImport);
  pool.Add<PoolDeleteWords>(
      "delete", "delete a pool's volume with its data, which nobody on this node has",
      [](CLI::App& verb, PoolDeleteWords& words) {
        verb.add_option("id", words.ids, "as `get pool-volumes` shows it")
            ->required()
            ->type_name("POOLVOLUME");
        AddAbandoned(verb, words.abandoned);
      },
      RunPoolDelete);
}

}  // namespace volumed
