// Names in the mount table and in directories, by which an agent without records knows again what
// was mounted: iSCSI disks, Fibre Channel LUNs, NFS exports.
#include "fuzz/fuzz.h"
#include "plugins/fc_names.h"
#include "plugins/iscsi_names.h"
#include "volume/nfs_export.h"

namespace volumed::volume_names_fuzz {
namespace {

void CheckIscsi(const std::string& path) {
  const std::optional<IscsiNames> names = ParseIscsiNames(path);
  if (!names) return;
  FUZZ_CHECK(names->lun >= 0);
  for (const std::string& name : {names->iface, names->portal, names->iqn}) {
    FUZZ_CHECK(!name.empty() && name.find('/') == std::string::npos);
  }
  const std::optional<IscsiNames> again =
      ParseIscsiNames("/x/iface-" + names->iface + "/" + names->portal + "-" + names->iqn +
                      "-lun-" + std::to_string(names->lun));
  FUZZ_CHECK(again.has_value());
  FUZZ_CHECK(IscsiVolumeName(again->portal, again->iqn, again->lun) ==
             IscsiVolumeName(names->portal, names->iqn, names->lun));
}

void CheckFc(const std::string& name) {
  const FcNames names = ParseFcDirectoryName(name);
  if (const Status status = ValidateFcNames(names); !status.ok()) {
    return fuzz::CheckError(status.error());
  }
  const std::string directory = FcDirectoryName(names);
  FUZZ_CHECK(fuzz::IsPathElement(directory));
  FUZZ_CHECK(ParseFcDirectoryName(directory) == names);
  FUZZ_CHECK(!FcVolumeName(names).empty());
}

void CheckNfs(std::string_view text) {
  const std::optional<NfsVolumeSource> source = ParseNfsExport(text);
  if (!source) return;
  FUZZ_CHECK(!source->server.empty());
  FUZZ_CHECK(source->path.starts_with('/'));
  FUZZ_CHECK(!NfsFaultDomain(*source).empty());
  const std::optional<NfsVolumeSource> again = ParseNfsExport(NfsExport(*source));
  FUZZ_CHECK(again && *again == *source);
}

}  // namespace

FUZZ_TARGET(volume_names)(const uint8_t* data, size_t size) {
  const std::string text(fuzz::TextOf(data, size));
  CheckIscsi(text);
  CheckFc(text);
  CheckNfs(text);
  return 0;
}

}  // namespace volumed::volume_names_fuzz
