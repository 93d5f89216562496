// The file beside an iSCSI mount, which another agent may have written. What is taken has names
// that a session can have, and says the same when it is written again.
#include "fuzz/fuzz.h"
#include "plugins/iscsi_disk.h"

namespace volumed::iscsi_disk_fuzz {

FUZZ_TARGET(iscsi_disk)(const uint8_t* data, size_t size) {
  const Result<IscsiDisk> disk = DecodeIscsiDisk(fuzz::TextOf(data, size));
  if (!disk.ok()) {
    fuzz::CheckError(disk.error());
    FUZZ_CHECK(!disk.error().maybe_applied());
    return 0;
  }
  FUZZ_CHECK(!disk->portals.empty());
  for (const std::string& portal : disk->portals) {
    FUZZ_CHECK(PortalWithPort(portal) == portal);
    FUZZ_CHECK(HasPortal(*disk, portal));
  }
  FUZZ_CHECK(fuzz::IsPathElement(disk->iface));
  const Result<IscsiDisk> again = DecodeIscsiDisk(EncodeIscsiDisk(*disk));
  FUZZ_CHECK(again.ok());
  FUZZ_CHECK(*again == *disk);
  return 0;
}

}  // namespace volumed::iscsi_disk_fuzz
