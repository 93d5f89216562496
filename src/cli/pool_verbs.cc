// The verb pool: PersistentVolumes of storage that is there already.
#include <iostream>
#include <string>

#include "cli/calls.h"

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
                  "of a CSI volume, or of a directory; default: what the directory has in it")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(CLI::PositiveNumber)
      ->type_name("BYTES");
  verb.add_flag("--yes", words.yes, "do it; without it nothing is done but to look");
}

}  // namespace

void AddPoolVerbs(const Verbs& verbs) {
  const Verbs pool = verbs.Group("pool", "the pools of this node; `get pools` lists them");
  pool.Add<PoolImportWords>("import",
                            "print the PersistentVolume of storage that is there already, without "
                            "copying it; a check of its filesystem may need --request-timeout",
                            DeclarePoolImport, RunPoolImport);
}

}  // namespace volumed
