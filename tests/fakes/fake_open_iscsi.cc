#include "fakes/fake_open_iscsi.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/strings.h"

namespace volumed {
namespace {

using Target = std::shared_ptr<FakeIscsiTarget>;

constexpr char kMistakes[] = "/fake-iscsi/mistakes";
constexpr char kCalls[] = "/fake-iscsi/calls";
constexpr char kRecords[] = "/etc/iscsi";
// As they end. Source: open-iscsi include/iscsi_err.h.
constexpr int kLoginFailed = 5;
constexpr int kNoDatabase = 6;
constexpr int kTimeout = 8;
constexpr int kSessionExists = 15;
constexpr int kNoDaemon = 20;
constexpr int kNothingFound = 21;
constexpr int kAuthFailed = 24;

std::string Content(const FakeKernel& world, const std::string& path) {
  return world.Find(path).content;
}

void Append(FakeKernel& world, const std::string& path, const std::string& line) {
  world.AddFile(path, Content(world, path) + line + "\n");
}

std::vector<std::string> Lines(const FakeKernel& world, const std::string& path) {
  return SplitNonEmpty(Content(world, path), '\n');
}

// The names in a directory, by the tree's text: "<path> d ..".
std::vector<std::string> Names(const FakeKernel& world, const std::string& directory) {
  std::set<std::string> names;
  for (const std::string& line : SplitNonEmpty(world.DumpTree(directory), '\n')) {
    const std::string path = line.substr(0, line.find(' '));
    const auto below = StripPrefix(path, directory + "/");
    if (below) names.insert(std::string(below->substr(0, below->find('/'))));
  }
  return {names.begin(), names.end()};
}

std::string Setting(const std::string& record, const std::string& name) {
  for (const std::string& line : Split(record, '\n')) {
    if (line.starts_with(name + " = ")) return line.substr(name.size() + 3);
  }
  return "";
}

std::string WithSetting(const std::string& record, const std::string& name,
                        const std::string& value) {
  std::string text;
  for (const std::string& line : SplitNonEmpty(record, '\n')) {
    if (line.starts_with(name + " = ")) continue;
    if (line == "# END RECORD") text += name + " = " + value + "\n";
    text += line + "\n";
  }
  return text;
}

// ---- the kernel ---------------------------------------------------------------------------------

struct Session {
  std::string number;
  std::string directory() const {
    return "/sys/devices/platform/host" + number + "/session" + number;
  }
  std::string attributes() const { return directory() + "/iscsi_session/session" + number; }
  std::string connection() const {
    return directory() + "/connection" + number + ":0/iscsi_connection/connection" + number + ":0";
  }
  std::string targets() const { return directory() + "/target" + number + ":0:0"; }
};

std::vector<Session> Sessions(const FakeKernel& world) {
  std::vector<Session> sessions;
  for (const std::string& name : Names(world, "/sys/class/iscsi_session")) {
    sessions.push_back({name.substr(std::string("session").size())});
  }
  return sessions;
}

std::string PortalOf(const FakeKernel& world, const Session& session) {
  return Content(world, session.connection() + "/persistent_address") + ":" +
         Content(world, session.connection() + "/persistent_port");
}

std::optional<Session> FindSession(const FakeKernel& world, const std::string& iqn,
                                   const std::string& portal, const std::string& iface) {
  for (const Session& session : Sessions(world)) {
    if (Content(world, session.attributes() + "/targetname") == iqn &&
        Content(world, session.attributes() + "/ifacename") == iface &&
        PortalOf(world, session) == portal) {
      return session;
    }
  }
  return std::nullopt;
}

std::string NodeOf(const FakeIscsiTarget& target, const std::string& portal, int64_t lun) {
  const auto at = std::find(target.portals.begin(), target.portals.end(), portal);
  return target.luns.at(lun) + std::string(static_cast<size_t>(at - target.portals.begin()), 'b');
}

std::string ByPath(const FakeIscsiTarget& target, const std::string& portal, int64_t lun) {
  return "/dev/disk/by-path/ip-" + portal + "-iscsi-" + target.iqn + "-lun-" + std::to_string(lun);
}

std::string MapOf(int64_t lun) { return "dm-" + std::to_string(lun); }
std::string MapLink(int64_t lun) {
  return "/dev/disk/by-id/dm-uuid-mpath-3600140500000000" + std::to_string(lun);
}

bool IsMounted(const FakeKernel& world, const std::string& node) {
  const auto mounts = world.Mounts();
  // By its number: the source may be a link to it.
  const DeviceIdentity disk = world.Device(node).identity;
  return std::any_of(mounts.begin(), mounts.end(), [&](const MountEntry& mount) {
    return mount.device_major == disk.device_major && mount.device_minor == disk.device_minor;
  });
}

void RemoveIfThere(FakeKernel& world, const std::string& path) {
  if (world.Exists(path)) world.Remove(path);
}

void RemoveUnit(FakeKernel& world, const FakeIscsiTarget& target, const Session& session,
                const std::string& portal, int64_t lun, bool by_logout) {
  const std::string node = NodeOf(target, portal, lun);
  const std::string unit = session.targets() + "/" + session.number + ":0:0:" + std::to_string(lun);
  const std::string how = by_logout ? "the session was ended under " : "deleted was ";
  const FakeDevice disk = world.Device(node);
  if (IsMounted(world, node) || disk.claimed || disk.OpenPins() > 0) {
    Append(world, kMistakes, how + node + ", which is in use");
  } else if (disk.flushes <= ParseInt64(Content(world, unit + "/flushes")).value_or(0)) {
    Append(world, kMistakes, how + node + ", which was not flushed");
  }
  RemoveIfThere(world, "/sys/block/" + node.substr(5));
  RemoveIfThere(world, unit);
  RemoveIfThere(world, ByPath(target, portal, lun));
  RemoveIfThere(world, node);
}

void MakeMap(FakeKernel& world, const FakeIscsiTarget& target, int64_t lun) {
  const std::string map = MapOf(lun);
  const std::string place = "/sys/devices/virtual/block/" + map;
  std::vector<std::string> paths;
  for (const Session& session : Sessions(world)) {
    const std::string node = NodeOf(target, PortalOf(world, session), lun);
    if (world.Exists(node)) paths.push_back(node.substr(5));
  }
  if (paths.size() < 2 || world.Exists(place)) return;
  const std::string node = "/dev/" + map;
  FakeDevice disk = world.Device(target.luns.at(lun));
  disk.identity = {};
  disk.identity.stable_id = "dm:mpath-" + std::to_string(lun);
  world.AddDevice(node, disk);
  world.AddFile(place + "/dm/uuid", "mpath-3600140500000000" + std::to_string(lun) + "\n");
  const DeviceIdentity identity = world.Device(node).identity;
  world.AddFile(place + "/dev", std::to_string(identity.device_major) + ":" +
                                    std::to_string(identity.device_minor) + "\n");
  world.AddSymlink("/sys/block/" + map, "../devices/virtual/block/" + map);
  if (target.names_multipath) world.AddSymlink(MapLink(lun), "../../" + map);
  for (const std::string& path : paths) {
    world.AddSymlink(place + "/slaves/" + path, "../../../../../../block/" + path);
    const std::string link = world.Find("/sys/block/" + path).content;
    world.AddSymlink((std::filesystem::path("/sys/block") / link).lexically_normal().native() +
                         "/holders/" + map,
                     "/sys/block/" + map);
    world.ChangeDevice("/dev/" + path, [&](FakeDevice& of) { of.holders = {map}; });
  }
}

void Scan(FakeKernel& world, const Target& target, const Session& session, int64_t lun) {
  const std::string portal = PortalOf(world, session);
  const std::string unit = session.targets() + "/" + session.number + ":0:0:" + std::to_string(lun);
  if (!target->luns.contains(lun) || world.Exists(unit)) return;
  const std::string node = NodeOf(*target, portal, lun);
  const std::string name = node.substr(5);
  world.ReturnDeviceNode(node);
  const FakeDevice disk = world.Device(node);
  world.AddFile(unit + "/type", "0\n");
  world.AddFile(unit + "/state", "running\n");
  world.AddFile(unit + "/wwid", "naa.600140500000000" + std::to_string(lun) + "\n");
  world.AddFile(unit + "/flushes", std::to_string(disk.flushes));
  world.AddFile(unit + "/block/" + name + "/dev", std::to_string(disk.identity.device_major) + ":" +
                                                      std::to_string(disk.identity.device_minor) +
                                                      "\n");
  world.AddDirectory(unit + "/block/" + name + "/holders");
  world.AddAttribute(unit + "/rescan", [node](FakeKernel& at, const std::string&) {
    Append(at, "/fake-iscsi/rescans", node);
  });
  world.AddAttribute(unit + "/delete",
                     [target, session, portal, lun](FakeKernel& at, const std::string&) {
                       RemoveUnit(at, *target, session, portal, lun, false);
                     });
  world.AddSymlink("/sys/block/" + name,
                   ".." + unit.substr(std::string("/sys").size()) + "/block/" + name);
  world.AddSymlink(ByPath(*target, portal, lun), "../../" + name);
  if (target->multipath) MakeMap(world, *target, lun);
}

void StartSession(FakeKernel& world, const Target& target, const std::string& portal,
                  const std::string& iface) {
  int64_t next = 1;
  for (const Session& other : Sessions(world)) {
    next = std::max(next, ParseInt64(other.number).value_or(0) + 1);
  }
  const Session session{std::to_string(next)};
  const std::string name = "session" + session.number;
  const std::string host = "host" + session.number;
  const std::string connection = "connection" + session.number + ":0";
  world.AddFile(session.attributes() + "/targetname", target->iqn);
  world.AddFile(session.attributes() + "/ifacename", iface);
  const size_t colon = portal.rfind(':');
  for (const char* kind : {"persistent_", ""}) {
    world.AddFile(session.connection() + "/" + kind + "address", portal.substr(0, colon));
    world.AddFile(session.connection() + "/" + kind + "port", portal.substr(colon + 1));
  }
  const std::string up = "../../devices/platform/" + host + "/";
  world.AddSymlink("/sys/class/iscsi_connection/" + connection,
                   up + name + "/" + connection + "/iscsi_connection/" + connection);
  world.AddAttribute("/sys/devices/platform/" + host + "/scsi_host/" + host + "/scan",
                     [target, session](FakeKernel& at, const std::string& value) {
                       const std::vector<std::string> parts = SplitNonEmpty(value, ' ');
                       if (parts.size() == 3)
                         Scan(at, target, session, ParseInt64(parts[2]).value_or(-1));
                     });
  world.AddSymlink("/sys/class/scsi_host/" + host, up + "scsi_host/" + host);
  world.AddSymlink("/sys/class/iscsi_session/" + name, up + name + "/iscsi_session/" + name);
}

void EndSession(FakeKernel& world, const FakeIscsiTarget& target, const Session& session) {
  const std::string portal = PortalOf(world, session);
  for (const auto& [lun, node] : target.luns) {
    const std::string unit =
        session.targets() + "/" + session.number + ":0:0:" + std::to_string(lun);
    if (world.Exists(unit)) RemoveUnit(world, target, session, portal, lun, true);
  }
  world.Remove("/sys/class/iscsi_session/session" + session.number);
  world.Remove("/sys/class/iscsi_connection/connection" + session.number + ":0");
  world.Remove("/sys/class/scsi_host/host" + session.number);
  world.Remove("/sys/devices/platform/host" + session.number);
}

// ---- iscsiadm -----------------------------------------------------------------------------------

struct Arguments {
  std::string mode, portal, group, iqn, iface = "default", op;
  bool discover = false, login = false, logout = false;
  std::vector<std::pair<std::string, std::string>> settings;
};

Arguments Parse(const std::vector<std::string>& words) {
  Arguments parsed;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--discover") parsed.discover = true;
    if (word == "--login") parsed.login = true;
    if (word == "--logout") parsed.logout = true;
    if (i + 1 >= words.size() || word.size() != 2) continue;
    const std::string& value = words[i + 1];
    if (word == "-m") parsed.mode = value;
    if (word == "-p") parsed.portal = value;
    if (word == "-T") parsed.iqn = value;
    if (word == "-I") parsed.iface = value;
    if (word == "-o") parsed.op = value;
    if (word == "-n") parsed.settings.emplace_back(value, "");
    if (word == "-v" && !parsed.settings.empty()) parsed.settings.back().second = value;
  }
  const size_t comma = parsed.portal.rfind(',');
  if (comma != std::string::npos) {
    parsed.group = parsed.portal.substr(comma + 1);
    parsed.portal = parsed.portal.substr(0, comma);
  }
  return parsed;
}

std::string FileNameOf(const std::string& portal) {
  const size_t colon = portal.rfind(':');
  return portal.substr(0, colon) + "," + portal.substr(colon + 1);
}

std::string NodeRecord(const FakeKernel& world, const Arguments& of) {
  const std::string base = std::string(kRecords) + "/nodes/" + of.iqn + "/" + FileNameOf(of.portal);
  if (!of.group.empty()) return base + "," + of.group + "/" + of.iface;
  for (const char* group : {",1"}) {
    if (world.Exists(base + group + "/" + of.iface)) return base + group + "/" + of.iface;
  }
  return base;
}

bool Authenticates(const FakeIscsiTarget& target, const std::string& record,
                   const std::string& prefix) {
  if (target.chap_user.empty()) return true;
  return Setting(record, prefix + "authmethod") == "CHAP" &&
         Setting(record, prefix + "username") == target.chap_user &&
         Setting(record, prefix + "password") == target.chap_password;
}

ProgramEnd Iface(FakeKernel& world, const Arguments& of) {
  const std::string record = std::string(kRecords) + "/ifaces/" + of.iface;
  const bool built_in = of.iface == "default";
  if (of.op == "new") world.AddFile(record, "iface.transport_name = tcp\n# END RECORD\n", 0600);
  if (!built_in && !world.Exists(record)) return {kNoDatabase, "no iface " + of.iface};
  if (of.op == "delete") world.Remove(record);
  for (const auto& [name, value] : of.settings) {
    world.AddFile(record, WithSetting(Content(world, record), name, value), 0600);
  }
  if (of.op != "show") return {};
  return {0, "# BEGIN RECORD 2.1.8\niface.iscsi_ifacename = " + of.iface +
                 "\niface.net_ifacename = <empty>\niface.transport_name = tcp\n# END RECORD\n"};
}

ProgramEnd Discovery(FakeKernel& world, const FakeIscsiTarget& target, const Arguments& of) {
  const std::string directory = std::string(kRecords) + "/send_targets/" + FileNameOf(of.portal);
  const std::string record = directory + "/st_config";
  if (of.mode == "discoverydb" && !of.discover) {
    if (of.op == "new") world.AddFile(record, "# BEGIN RECORD 2.1.8\n# END RECORD\n", 0600);
    if (of.op == "delete") RemoveIfThere(world, directory);
    return {};
  }
  const bool known =
      std::find(target.portals.begin(), target.portals.end(), of.portal) != target.portals.end();
  if (!known || target.dead_portals.contains(of.portal)) return {kTimeout, "no answer"};
  if (target.chap_discovery &&
      !Authenticates(target, Content(world, record), "discovery.sendtargets.auth.")) {
    return {kAuthFailed, "discovery login failed to authenticate"};
  }
  std::string output;
  for (const std::string& portal : target.portals) output += portal + ",1 " + target.iqn + "\n";
  return {0, output};
}

ProgramEnd Login(FakeKernel& world, const Target& target, const Arguments& of) {
  const std::string record = Content(world, NodeRecord(world, of));
  if (record.empty()) return {kNothingFound, "No records found"};
  if (!target->daemon_runs) return {kNoDaemon, "could not connect to iscsid"};
  if (FindSession(world, of.iqn, of.portal, of.iface)) return {kSessionExists, "session exists"};
  if (target->dead_portals.contains(of.portal)) return {kTimeout, "connection timed out"};
  if (of.iqn != target->iqn) return {kLoginFailed, "target not found"};
  if (!Authenticates(*target, record, "node.session.auth.")) {
    Append(world, "/fake-iscsi/refused", of.iqn);
    return {kAuthFailed, "login failed due to authorization failure"};
  }
  if (Setting(record, "node.session.scan") != "manual") {
    Append(world, kMistakes, "a session that takes every LUN");
  }
  StartSession(world, target, of.portal, of.iface);
  return {};
}

ProgramEnd Node(FakeKernel& world, const Target& target, const Arguments& of) {
  const std::string record = NodeRecord(world, of);
  const auto session = FindSession(world, of.iqn, of.portal, of.iface);
  if (of.login) return Login(world, target, of);
  if (of.logout) {
    if (!session) return {kNothingFound, "No matching sessions found"};
    EndSession(world, *target, *session);
    return {};
  }
  if (of.op == "new") {
    world.AddFile(record,
                  "# BEGIN RECORD 2.1.8\nnode.session.scan = auto\n"
                  "node.session.auth.authmethod = None\n# END RECORD\n",
                  0600);
    return {};
  }
  if (!world.Exists(record)) return {kNothingFound, "No records found"};
  if (of.op == "delete" && session) EndSession(world, *target, *session);  // as the real one does
  if (of.op == "delete") world.Remove(record);
  for (const auto& [name, value] : of.settings) {
    world.AddFile(record, WithSetting(Content(world, record), name, value), 0600);
  }
  return {};
}

ProgramEnd Iscsiadm(FakeKernel& world, const Target& target,
                    const std::vector<std::string>& words) {
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  Append(world, kCalls, Join(rest, " "));
  for (const std::string& word : rest) {
    if (!target->chap_password.empty() && word == target->chap_password) {
      Append(world, kMistakes, "a password on a command line");
    }
  }
  const Arguments of = Parse(words);
  if (of.mode == "iface") return Iface(world, of);
  if (of.mode == "node") return Node(world, target, of);
  return Discovery(world, *target, of);
}

}  // namespace

void InstallFakeOpenIscsi(FakeKernel& kernel, std::shared_ptr<FakeIscsiTarget> target) {
  kernel.AddDirectory("/sys/class/iscsi_session");
  kernel.AddDirectory("/sys/class/iscsi_connection");
  kernel.AddDirectory("/sys/class/scsi_host");
  kernel.AddDirectory("/sys/block");
  kernel.AddProgram("/usr/sbin/multipath", [](FakeKernel& world,
                                              const std::vector<std::string>& arguments) {
    const std::string node = arguments.back();
    const std::string map = node.substr(5);
    if (IsMounted(world, node)) return ProgramEnd{1, map + ": map in use"};
    for (const std::string& path : Names(world, "/sys/devices/virtual/block/" + map + "/slaves")) {
      const std::string link = world.Find("/sys/block/" + path).content;
      world.Remove((std::filesystem::path("/sys/block") / link).lexically_normal().native() +
                   "/holders/" + map);
      world.ChangeDevice("/dev/" + path, [](FakeDevice& of) { of.holders.clear(); });
    }
    world.Remove("/sys/block/" + map);
    world.Remove("/sys/devices/virtual/block/" + map);
    world.Remove(node);
    return ProgramEnd{};
  });
  kernel.AddProgram(kFakeIscsiadm,
                    [target](FakeKernel& world, const std::vector<std::string>& arguments) {
                      return Iscsiadm(world, target, arguments);
                    });
}

void AddFakeLun(FakeKernel& kernel, const FakeIscsiTarget& target, int64_t lun, FakeDevice disk) {
  for (const std::string& portal : target.portals) {
    const std::string node = NodeOf(target, portal, lun);
    FakeDevice path = disk;
    if (path.identity.stable_id.empty()) {
      path.identity.stable_id = "wwid:naa.600140500000000" + std::to_string(lun);
    }
    kernel.AddDevice(node, path);
    kernel.Remove(node);
  }
}

std::vector<std::string> FakeIscsiMistakes(const FakeKernel& kernel) {
  return Lines(kernel, kMistakes);
}

std::vector<std::string> FakeIscsiSessions(const FakeKernel& kernel) {
  std::vector<std::string> texts;
  for (const Session& session : Sessions(kernel)) {
    texts.push_back("session" + session.number + " " +
                    Content(kernel, session.attributes() + "/targetname") + " " +
                    PortalOf(kernel, session) + " " +
                    Content(kernel, session.attributes() + "/ifacename"));
  }
  return texts;
}

std::vector<std::string> FakeIscsiCalls(const FakeKernel& kernel) { return Lines(kernel, kCalls); }

std::vector<std::string> FakeIscsiNodes(const FakeKernel& kernel) {
  std::vector<std::string> records;
  const std::string nodes = std::string(kRecords) + "/nodes";
  if (!kernel.Exists(nodes)) return records;
  for (const std::string& line : SplitNonEmpty(kernel.DumpTree(nodes), '\n')) {
    const std::string path = line.substr(0, line.find(' '));
    if (kernel.Find(path).type == FileType::kRegular) {
      records.push_back(path.substr(nodes.size() + 1));
    }
  }
  return records;
}

}  // namespace volumed
