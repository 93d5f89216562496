#include "plugins/iscsi_initiator.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/strings.h"
#include "mounter/host_directory.h"
#include "mounter/volume_places.h"
#include "operation/call_options.h"
#include "pluginmgr/device_volume.h"

namespace volumed {
namespace {

// Source: iscsi_util.go (minMultipathCount, minAttachAttempts, maxAttachAttempts).
constexpr size_t kEnoughPaths = 2;
constexpr int kEnoughRounds = 2;
constexpr int kMostRounds = 5;
constexpr uint32_t kFileMode = 0600;

// The link of the multipath device over a unit, as udevd's rules make it of multipathd's name; ""
// for a unit whose name they would spell in another way. Source: multipath-tools
// libmultipath/discovery.c (parse_vpd_pg83), kpartx/dm-parts.rules.
std::string MultipathLink(const std::string& wwid) {
  constexpr char kLink[] = "/dev/disk/by-id/dm-uuid-mpath-";
  if (const auto naa = StripPrefix(wwid, "naa.")) return kLink + ("3" + std::string(*naa));
  if (const auto eui = StripPrefix(wwid, "eui.")) return kLink + ("2" + std::string(*eui));
  return "";
}

CallOptions Within(const CallOptions& call, const Clock& clock, Duration timeout) {
  CallOptions bounded = call;
  const Deadline own = Deadline::After(clock, timeout);
  if (own.when() < call.deadline.when()) bounded.deadline = own;
  return bounded;
}

Status AfterEffects(const Status& status) {
  return status.ok() ? status : Status(status.error().AsMaybeApplied());
}

// By one of the volume's portals.
bool IsWith(const IscsiSession& session, const IscsiDisk& disk) {
  return std::any_of(session.portals.begin(), session.portals.end(),
                     [&](const std::string& portal) { return HasPortal(disk, portal); });
}

}  // namespace

// ---- attach -------------------------------------------------------------------------------------

struct IscsiInitiator::Attach {
  const IscsiAttachRequest& request;
  const IscsiDisk& disk;
  ChapSettings discovery, session;                  // empty: without CHAP
  std::map<std::string, std::string> missing = {};  // portal: why
  std::vector<std::string> present = {};            // portals with the disk

  void Warn(const std::string& reason, const std::string& message) const {
    if (request.warn) request.warn(reason, message);
  }
};

IscsiInitiator::IscsiInitiator(VolumeHost& host, DeviceFinder& devices, const IscsiOptions& options)
    : host_(host),
      devices_(devices),
      options_(options),
      admin_(host.kernel, host.clock, options_.admin),
      records_(host.kernel, options_.database_roots),
      sessions_(host.kernel),
      scsi_(host.kernel) {}

// Before the first login, so that whatever ends the agent, somebody knows what to log out of. On
// what is mounted already it was written then, and lies beneath the mount.
Status IscsiInitiator::WriteFileFor(const IscsiAttachRequest& request, const CallOptions& call) {
  const CallOptions own = OnOwnFilesystem(call);
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(host_.kernel, request.place, own));
  if (mounted) return OkStatus();
  RETURN_IF_ERROR(MakePlace(host_.kernel, request.place, own));
  const auto written = host_.kernel.Call(
      WriteFile{request.place.Below(kIscsiFile),
                Secret<std::string>(EncodeIscsiDisk(request.volume.disk)), kFileMode},
      own);
  return written.ok() ? OkStatus() : Status(written.error().AsMaybeApplied());
}

Status IscsiInitiator::PrepareIface(const IscsiDisk& disk, const CallOptions& call) {
  ASSIGN_OR_RETURN(const IscsiIface original, admin_.ShowIface(disk.init_iface, call));
  return admin_.CloneIface(disk, original, call);
}

Result<std::string> IscsiInitiator::AttachDisk(const IscsiAttachRequest& request,
                                               const CallOptions& call) {
  Attach attach{request, request.volume.disk, {}, {}};
  if (request.chap_secret != nullptr && request.volume.chap_discovery) {
    ASSIGN_OR_RETURN(attach.discovery, ChapSettingsOf(*request.chap_secret, ChapUse::kDiscovery));
  }
  if (request.chap_secret != nullptr && request.volume.chap_session) {
    ASSIGN_OR_RETURN(attach.session, ChapSettingsOf(*request.chap_secret, ChapUse::kSession));
  }
  ASSIGN_OR_RETURN(const auto lock, targets_.Lock(attach.disk.iqn, host_.clock, call));
  // A question: without open-iscsi nothing is begun.
  RETURN_IF_ERROR(admin_.ShowIface(attach.disk.init_iface, call));
  RETURN_IF_ERROR(WriteFileFor(request, call));
  if (!attach.discovery.empty()) {
    RETURN_IF_ERROR(AfterEffects(EndLeftDiscovery(attach.disk, request.place, call)));
  }
  if (attach.disk.has_own_iface()) RETURN_IF_ERROR(AfterEffects(PrepareIface(attach.disk, call)));
  RETURN_IF_ERROR(AfterEffects(LoginAll(attach, call)));
  const Result<std::string> device = WaitForDevice(attach, call);
  return device.ok() ? device : Result<std::string>(device.error().AsMaybeApplied());
}

// A portal that is missing is tried again while it costs little; a volume does not wait for it long
// once it has a path.
Status IscsiInitiator::LoginAll(Attach& attach, const CallOptions& call) {
  std::optional<Error> last;
  std::optional<Deadline> patience;
  for (int round = 1; round <= kMostRounds; ++round) {
    for (const std::string& portal : attach.disk.portals) {
      if (std::find(attach.present.begin(), attach.present.end(), portal) != attach.present.end()) {
        continue;
      }
      if (patience && patience->Passed(host_.clock)) break;
      const Status attached = AttachPortal(attach, portal, call);
      if (attached.ok()) {
        attach.present.push_back(portal);
        attach.missing.erase(portal);
        if (!patience) patience = Deadline::After(host_.clock, options_.more_portals_timeout);
        continue;
      }
      attach.missing[portal] = attached.error().message();
      last = attached.error();
    }
    if (attach.present.empty() || attach.missing.empty()) break;
    if (attach.present.size() >= kEnoughPaths && round >= kEnoughRounds) break;
    if (patience && patience->Passed(host_.clock)) break;
  }
  std::string why;
  for (const auto& [portal, reason] : attach.missing) {
    why += (why.empty() ? "" : "; ") + portal + ": " + reason;
  }
  if (attach.present.empty()) {
    return Error::FromParts(last ? last->code() : Code::kInvalidArgument, Outcome::kMaybeApplied, 0,
                            "iscsi: failed to get any path for iscsi disk " + attach.disk.vol_name +
                                ", target " + attach.disk.iqn + ": " + why);
  }
  if (attach.present.size() < attach.disk.portals.size()) {
    attach.Warn("IscsiPortalMissing", std::to_string(attach.present.size()) + " of " +
                                          std::to_string(attach.disk.portals.size()) +
                                          " portals of target " + attach.disk.iqn +
                                          " lead to the disk; " + why);
  }
  return OkStatus();
}

Status IscsiInitiator::BeginDiscovery(const Attach& attach, const std::string& portal,
                                      const CallOptions& call) {
  const SafePath& place = attach.request.place;
  const CallOptions own = OnOwnFilesystem(call);
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(host_.kernel, place, own));
  if (!mounted) {  // on what is mounted it would be a file of the volume
    RETURN_IF_ERROR(host_.kernel.Call(
        WriteFile{place.Below(kIscsiDiscoveryFile), Secret<std::string>(portal), kFileMode}, own));
  }
  return admin_.NewDiscoveryRecord(portal, attach.disk.iface, call);
}

Status IscsiInitiator::EndDiscovery(const IscsiDisk& disk, const SafePath& place,
                                    const std::string& portal, const CallOptions& call) {
  const CallOptions own = OnOwnFilesystem(call);
  RETURN_IF_ERROR(admin_.DeleteDiscoveryRecord(portal, disk.iface, call));
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(host_.kernel, place, own));
  if (mounted) return OkStatus();
  RETURN_IF_ERROR(host_.kernel.Call(RemoveFile{place.Below(kIscsiDiscoveryFile)}, own));
  return OkStatus();
}

Status IscsiInitiator::EndLeftDiscovery(const IscsiDisk& disk, const SafePath& place,
                                        const CallOptions& call) {
  const CallOptions own = OnOwnFilesystem(call);
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(host_.kernel, place, own));
  if (mounted) return OkStatus();  // a pod could have written such a file
  const Result<FileContent> file =
      host_.kernel.Call(ReadFile{place.Below(kIscsiDiscoveryFile)}, own);
  if (!file.ok() && file.error().code() == Code::kNotFound) return OkStatus();
  if (!file.ok()) return file.error();
  if (!HasPortal(disk, file->bytes)) return OkStatus();
  ASSIGN_OR_RETURN(const auto lock, discoveries_.Lock(file->bytes, host_.clock, call));
  return EndDiscovery(disk, place, file->bytes, call);
}

// The portal's group, which tells records of the portal apart; "" where the target keeps it to
// itself.
Result<std::string> IscsiInitiator::DiscoverGroup(const Attach& attach, const std::string& portal,
                                                  const CallOptions& call) {
  const std::string& iface = attach.disk.iface;
  const bool with_chap = !attach.discovery.empty();
  bool is_ours = false;
  std::unique_ptr<NamedLocks::Guard> lock;
  if (with_chap) {
    // The file names one portal: as long as the record of the last discovery could not be deleted,
    // none is made for another portal, or nobody would know whose that one is. This takes the lock
    // of that portal, so it comes before the lock of this one.
    RETURN_IF_ERROR(EndLeftDiscovery(attach.disk, attach.request.place, call));
    // Targets of one portal share its record.
    ASSIGN_OR_RETURN(lock, discoveries_.Lock(portal, host_.clock, call));
    // One that an administrator has is used, and stays.
    ASSIGN_OR_RETURN(const bool known, records_.HasDiscovery(portal, OnOwnFilesystem(call)));
    is_ours = !known;
    if (is_ours) RETURN_IF_ERROR(BeginDiscovery(attach, portal, call));
    RETURN_IF_ERROR(records_.SetDiscovery(portal, attach.discovery, OnOwnFilesystem(call)));
  }
  const Result<std::vector<DiscoveredPortal>> found =
      admin_.Discover(portal, iface, with_chap, call);
  if (is_ours) RETURN_IF_ERROR(EndDiscovery(attach.disk, attach.request.place, portal, call));
  lock.reset();
  if (!found.ok()) return found.error();
  bool offered = found->empty();
  for (const DiscoveredPortal& target : *found) {
    if (target.iqn != attach.disk.iqn) continue;
    offered = true;
    if (IsSamePortal(target.portal, portal)) return target.group;
  }
  if (offered) return std::string();
  return Error::NotApplied(Code::kNotFound, "the portal offers no target " + attach.disk.iqn +
                                                " to this initiator (of " +
                                                std::to_string(found->size()) + " that it names)");
}

Status IscsiInitiator::Login(const Attach& attach, const std::string& portal,
                             const CallOptions& call) {
  const IscsiDisk& disk = attach.disk;
  ASSIGN_OR_RETURN(const std::string group, DiscoverGroup(attach, portal, call));
  RETURN_IF_ERROR(admin_.NewNode(disk, portal, group, call));
  // Only the volume's LUN is wanted here, and no session that an agent did not ask for.
  RETURN_IF_ERROR(admin_.SetNode(
      disk, portal, {{"node.session.scan", "manual"}, {"node.startup", "manual"}}, call));
  if (!attach.session.empty()) {
    RETURN_IF_ERROR(records_.SetNode(disk, portal, attach.session, OnOwnFilesystem(call)));
  }
  Status logged_in = admin_.Login(disk, portal, call);
  if (logged_in.ok()) return OkStatus();
  // Nothing is left of a login that failed, not even its record with the secret. One of which
  // nothing is known is ended by DetachDisk.
  if (const Status deleted = admin_.DeleteNode(disk, portal, call); !deleted.ok()) {
    return logged_in.error().With("(its record stays: " + deleted.error().message() + ")");
  }
  return logged_in;
}

Status IscsiInitiator::AttachPortal(Attach& attach, const std::string& portal,
                                    const CallOptions& call) {
  const CallOptions own = OnOwnFilesystem(call);
  ASSIGN_OR_RETURN(std::vector<IscsiSession> sessions, sessions_.Of(attach.disk, own));
  const IscsiSession* session = SessionAt(sessions, portal);
  if (session == nullptr) {
    RETURN_IF_ERROR(Login(attach, portal, call));
    ASSIGN_OR_RETURN(sessions, sessions_.Of(attach.disk, own));
    session = SessionAt(sessions, portal);
  }
  if (session == nullptr) {
    return Error::MaybeApplied(Code::kUnavailable, "the login ended well, and there is no session");
  }
  const auto has_lun = [&](const std::vector<IscsiSessionDisk>& disks) {
    return std::any_of(disks.begin(), disks.end(),
                       [&](const auto& disk) { return disk.lun == attach.disk.lun; });
  };
  ASSIGN_OR_RETURN(const std::vector<IscsiSessionDisk> before, sessions_.DisksOf(*session, own));
  if (has_lun(before)) return OkStatus();
  // The target is asked, and may be slow: not on the agent's own lane.
  RETURN_IF_ERROR(scsi_.ScanHost(session->host, 0, 0, attach.disk.lun, call));
  ASSIGN_OR_RETURN(const std::vector<IscsiSessionDisk> after, sessions_.DisksOf(*session, own));
  if (has_lun(after)) return OkStatus();
  return Error::MaybeApplied(
      Code::kNotFound,
      "the target shows no disk as LUN " + std::to_string(attach.disk.lun) + " to this initiator");
}

// ---- the device ---------------------------------------------------------------------------------

Result<IscsiInitiator::PathDisks> IscsiInitiator::DisksOf(const IscsiDisk& disk,
                                                          const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<IscsiSession> sessions, sessions_.Of(disk, call));
  PathDisks own;
  for (const IscsiSession& session : sessions) {
    if (!IsWith(session, disk)) continue;
    ASSIGN_OR_RETURN(const std::vector<IscsiSessionDisk> disks, sessions_.DisksOf(session, call));
    for (const IscsiSessionDisk& found : disks) {
      if (found.lun == disk.lun) own.push_back(found);
    }
  }
  return own;
}

Result<std::optional<std::string>> IscsiInitiator::FindDevice(const IscsiDisk& disk,
                                                              const CallOptions& call) {
  ASSIGN_OR_RETURN(const PathDisks disks, DisksOf(disk, call));
  std::optional<std::string> single;
  for (const IscsiSessionDisk& path : disks) {
    if (path.name.empty()) continue;
    const std::string node = "/dev/" + path.name;
    ASSIGN_OR_RETURN(std::optional<std::string> multipath, scsi_.MultipathOf(node, call));
    if (multipath) return multipath;
    if (!single) single = node;
  }
  return single;
}

Status IscsiInitiator::ProveNode(const IscsiDisk& disk, const std::string& node,
                                 const CallOptions& call) {
  const CallOptions own = OnOwnFilesystem(call);
  ASSIGN_OR_RETURN(const PathDisks disks, DisksOf(disk, own));
  for (const IscsiSessionDisk& path : disks) {
    if (path.name.empty()) continue;
    if (node == "/dev/" + path.name) return OkStatus();
    ASSIGN_OR_RETURN(const std::optional<std::string> multipath,
                     scsi_.MultipathOf("/dev/" + path.name, own));
    if (multipath && node == *multipath) return OkStatus();
  }
  return Error::NotApplied(
      Code::kFailedPrecondition,
      "device " + node + " is not LUN " + std::to_string(disk.lun) + " of target " + disk.iqn);
}

Result<DeviceIdentity> IscsiInitiator::ProveDevice(const IscsiDisk& disk, const std::string& path,
                                                   const CallOptions& call) {
  ASSIGN_OR_RETURN(const IdentifiedDevice device,
                   host_.kernel.Call(IdentifyDevice{HostPath(path)}, call));
  RETURN_IF_ERROR(ProveNode(disk, device.path, call).With("link " + path));
  return device.facts.identity;
}

Result<std::string> IscsiInitiator::WaitForLinks(const Attach& attach,
                                                 std::vector<std::string> links, Duration timeout,
                                                 const CallOptions& call) {
  DeviceQuery query;
  query.links = std::move(links);
  ASSIGN_OR_RETURN(const FoundDevice found,
                   devices_.WaitForDevice(query, Within(call, host_.clock, timeout)));
  RETURN_IF_ERROR(ProveNode(attach.disk, found.node, call).With("link " + found.link));
  return found.link.empty() ? found.node : found.link;
}

Result<std::string> IscsiInitiator::WaitForDevice(Attach& attach, const CallOptions& call) {
  const CallOptions own = OnOwnFilesystem(call);
  ASSIGN_OR_RETURN(const std::vector<IscsiSession> sessions, sessions_.Of(attach.disk, own));
  ASSIGN_OR_RETURN(const PathDisks disks, DisksOf(attach.disk, own));
  std::vector<std::string> links;
  std::vector<std::string> multipath_links;
  for (const IscsiSession& session : sessions) {
    for (const std::string& portal : session.portals) {
      if (!HasPortal(attach.disk, portal)) continue;
      links.push_back(ByPathLink(attach.disk, portal, session.pci_address));
    }
  }
  for (const IscsiSessionDisk& disk : disks) {
    const std::string link = MultipathLink(disk.wwid);
    const bool known = link.empty() || std::find(multipath_links.begin(), multipath_links.end(),
                                                 link) != multipath_links.end();
    if (!known) multipath_links.push_back(link);
  }
  const bool wants_multipath = attach.disk.portals.size() > 1;
  if (wants_multipath && !multipath_links.empty()) {
    Result<std::string> device =
        WaitForLinks(attach, multipath_links, options_.multipath_timeout, call);
    if (device.ok() || device.error().code() != Code::kDeadlineExceeded ||
        call.deadline.Passed(host_.clock)) {
      return device;
    }
  }
  // One that udevd has not named yet, or whose unit multipathd spells in its own way. A path of it
  // is of no use, and that there is a single path would not be true.
  ASSIGN_OR_RETURN(std::optional<std::string> map, FindMap(attach.disk, own));
  if (map) return WaitForMap(attach, *map, multipath_links, call);
  if (wants_multipath) {
    attach.Warn("IscsiSinglePath",
                "there is no multipath device over the disk of target " + attach.disk.iqn +
                    ": it is used by a single path (is multipathd of multipath-tools running, and "
                    "does its find_multipaths let it take new disks?)");
  }
  // A path that multipathd has taken is not given out: then its multipath device is.
  links.insert(links.end(), multipath_links.begin(), multipath_links.end());
  Result<std::string> device = WaitForLinks(attach, links, options_.device_timeout, call);
  if (!device.ok() && device.error().code() != Code::kDeadlineExceeded) return device;
  ASSIGN_OR_RETURN(map, FindMap(attach.disk, own));  // it may have come meanwhile
  return map ? WaitForMap(attach, *map, multipath_links, call) : device;
}

Result<std::optional<std::string>> IscsiInitiator::FindMap(const IscsiDisk& disk,
                                                           const CallOptions& call) {
  ASSIGN_OR_RETURN(std::optional<std::string> device, FindDevice(disk, call));
  ASSIGN_OR_RETURN(const bool is_map, device ? scsi_.IsMultipath(*device, call) : Result(false));
  if (!is_map) device.reset();
  return device;
}

Result<std::string> IscsiInitiator::WaitForMap(const Attach& attach, const std::string& map,
                                               std::vector<std::string> links,
                                               const CallOptions& call) {
  links.push_back(map);  // the last: what else leads to it is the same after a reboot
  return WaitForLinks(attach, std::move(links), options_.device_timeout, call);
}

Result<bool> IscsiInitiator::IsDiskOf(const IscsiDisk& disk, const ScsiDisk& found,
                                      const CallOptions& call) {
  if (found.lun != disk.lun) return false;
  ASSIGN_OR_RETURN(const std::optional<IscsiSession> session,
                   sessions_.UnderDisk(found.sysfs_path, disk, call));
  return session && IsWith(*session, disk);
}

Status IscsiInitiator::RescanSize(const IscsiDisk& disk, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<std::string> device,
                   FindDevice(disk, OnOwnFilesystem(call)));
  if (device) return scsi_.RescanSize(*device, call);
  return Error::NotApplied(Code::kFailedPrecondition, "no session with target " + disk.iqn +
                                                          " has LUN " + std::to_string(disk.lun));
}

}  // namespace volumed
