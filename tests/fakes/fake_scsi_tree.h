// FakeScsiTree: the sysfs of SCSI disks and multipath devices on a FakeKernel, as recorded on nodes
// that have them, and what Linux does when its attributes are written: a deleted disk goes, a
// flushed map goes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "fakes/fake_kernel.h"

namespace volumed {

struct FakeScsiDisk {
  std::string name;     // "sdb"
  std::string address;  // "3:0:0:1"
  std::string rport = "rport-3:0-0";
  std::string wwid = "naa.6001405a1b2c3d4e";  // empty: the disk says none
  FakeDevice device = {};
};

// What was told to the tools, and how they are to end. Outlives agents.
struct FakeMultipathTools {
  std::vector<std::string> commands;
  int flush_status = 0;
  int resize_status = 0;
};

// Builds; what it built lives in the kernel, and in its clones.
class FakeScsiTree {
 public:
  explicit FakeScsiTree(FakeKernel& kernel) : kernel_(kernel) {}

  void AddHost(int host) {
    const std::string name = "host" + std::to_string(host);
    const std::string dir =
        "/sys/devices/pci0000:00/0000:00:0" + std::to_string(host) + ".0/" + name;
    kernel_.AddFile(dir + "/scsi_host/" + name + "/scan", "");
    kernel_.AddSymlink("/sys/class/scsi_host/" + name, Relative(dir + "/scsi_host/" + name));
    kernel_.AddFile(dir + "/fc_host/" + name + "/port_name", "0x21000024ff000001\n");
    kernel_.AddSymlink("/sys/class/fc_host/" + name, Relative(dir + "/fc_host/" + name));
  }
  // When all of host 3 is scanned, this disk is there.
  void AddDiskOnScan(const FakeScsiDisk& disk) {
    kernel_.AddAttribute("/sys/devices/pci0000:00/0000:00:03.0/host3/scsi_host/host3/scan",
                         [disk](FakeKernel& world, const std::string&) {
                           if (world.Exists("/sys/block/" + disk.name)) return;
                           FakeScsiTree(world).AddDisk(disk);
                         });
  }
  // A port of an array, as the FC transport has it.
  void AddRemotePort(const std::string& rport, const std::string& port_name) {
    const std::string dir = std::string(kHost) + "/" + rport + "/fc_remote_ports/" + rport;
    kernel_.AddFile(dir + "/port_name", port_name + "\n");
    kernel_.AddSymlink("/sys/class/fc_remote_ports/" + rport, Relative(dir));
  }
  void AddDisk(FakeScsiDisk disk) {
    if (disk.device.identity.stable_id.empty() && !disk.wwid.empty()) {
      disk.device.identity.stable_id = "wwid:" + disk.wwid;
    }
    const std::string node = "/dev/" + disk.name;
    kernel_.AddDevice(node, disk.device);
    const std::string dir = std::string(kHost) + "/" + disk.rport + "/target3:0:0/" + disk.address;
    const std::string block = dir + "/block/" + disk.name;
    if (!disk.wwid.empty()) kernel_.AddFile(dir + "/wwid", disk.wwid + "\n");
    kernel_.AddFile(dir + "/state", "running\n");
    kernel_.AddFile(dir + "/rescan", "");
    kernel_.AddFile(dir + "/delete", "");
    kernel_.AddFile(block + "/dev", Number(kernel_.Device(node)));
    kernel_.AddFile(block + "/size", Sectors(kernel_.Device(node)));
    kernel_.AddDirectory(block + "/holders");
    kernel_.AddDirectory(block + "/slaves");
    kernel_.AddSymlink(block + "/device", "../../../" + disk.address);
    kernel_.AddSymlink("/sys/block/" + disk.name, ".." + block.substr(4));
    kernel_.AddAttribute(dir + "/delete", [dir, node, name = disk.name](FakeKernel& world,
                                                                        const std::string& value) {
      if (value != "1") return;
      Remove(world, {"/sys/block/" + name, dir, node});
    });
  }
  // A device-mapper device made of disks that are there. `uuid`: "mpath-36001..", "LVM-..".
  void AddMap(const std::string& name, const std::string& alias, const std::string& uuid,
              const std::vector<std::string>& paths, FakeDevice device = {}) {
    if (device.identity.stable_id.empty()) device.identity.stable_id = "dm:" + uuid;
    kernel_.AddDevice("/dev/" + name, std::move(device));
    const std::string dir = "/sys/devices/virtual/block/" + name;
    kernel_.AddFile(dir + "/dev", Number(kernel_.Device("/dev/" + name)));
    kernel_.AddFile(dir + "/size", Sectors(kernel_.Device("/dev/" + name)));
    kernel_.AddFile(dir + "/dm/uuid", uuid + "\n");
    kernel_.AddDirectory(dir + "/holders");
    kernel_.AddDirectory(dir + "/slaves");
    for (const std::string& path : paths) {
      kernel_.AddSymlink(dir + "/slaves/" + path, "../../../../../block/" + path);
      kernel_.AddSymlink("/sys/block/" + path + "/holders/" + name, "../" + name);
      kernel_.ChangeDevice("/dev/" + path, [&](FakeDevice& d) { d.holders = {name}; });
    }
    kernel_.AddSymlink("/sys/block/" + name, "../devices/virtual/block/" + name);
    kernel_.AddSymlink("/dev/mapper/" + alias, "../" + name);
    maps_->push_back({name, alias, paths});
  }
  // multipath(8) and multipathd(8) are installed.
  void AddMultipathTools(const std::shared_ptr<FakeMultipathTools>& tools) {
    kernel_.AddProgram("/usr/sbin/multipath",
                       [tools, maps = maps_](FakeKernel& world, const auto& arguments) {
                         tools->commands.push_back(Join(arguments, " "));
                         if (tools->flush_status != 0)
                           return ProgramEnd{tools->flush_status, "map in use\n"};
                         for (const Map& map : *maps) {
                           if (arguments.back() == "/dev/" + map.name) RemoveMap(world, map);
                         }
                         return ProgramEnd{};
                       });
    kernel_.AddProgram(
        "/usr/sbin/multipathd", [tools, maps = maps_](FakeKernel& world, const auto& arguments) {
          tools->commands.push_back(Join(arguments, " "));
          if (tools->resize_status != 0) return ProgramEnd{tools->resize_status, "fail\n"};
          for (const Map& map : *maps) {
            if (arguments.back() != map.name || map.paths.empty()) continue;
            // As the real one: by its first path alone, dead or not.
            SetBytes(world, map.name, world.Device("/dev/" + map.paths[0]).identity.size_bytes);
          }
          return ProgramEnd{0, "ok\n"};
        });
  }
  // The array has made the unit larger; this path has said so.
  void Grow(const std::string& disk, int64_t bytes) { SetBytes(kernel_, disk, bytes); }
  void SetState(const std::string& disk, const std::string& state) {
    kernel_.AddFile("/sys/block/" + disk + "/device/state", state + "\n");
  }

  bool HasBlock(const std::string& name) const { return kernel_.Exists("/sys/block/" + name); }
  // Of an attribute below /sys.
  std::string Attribute(const std::string& path) const {
    return kernel_.Find("/sys/" + path, true).content;
  }

 private:
  static constexpr const char* kHost = "/sys/devices/pci0000:00/0000:00:03.0/host3";
  struct Map {
    std::string name, alias;
    std::vector<std::string> paths;
  };
  // From /sys/class/<class>/.
  static std::string Relative(const std::string& path) { return "../.." + path.substr(4); }
  static std::string Number(const FakeDevice& device) {
    return std::to_string(device.identity.device_major) + ":" +
           std::to_string(device.identity.device_minor) + "\n";
  }
  static std::string Sectors(const FakeDevice& device) {
    return std::to_string(device.identity.size_bytes / 512) + "\n";
  }
  static void SetBytes(FakeKernel& world, const std::string& name, int64_t bytes) {
    const std::string node = "/dev/" + name;
    world.ChangeDevice(node, [&](FakeDevice& device) { device.identity.size_bytes = bytes; });
    world.AddFile("/sys/block/" + name + "/size", Sectors(world.Device(node)));
  }
  static void Remove(FakeKernel& world, const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      if (world.Exists(path)) world.Remove(path);
    }
  }
  static void RemoveMap(FakeKernel& world, const Map& map) {
    for (const std::string& path : map.paths) {
      if (!world.Exists("/sys/block/" + path)) continue;
      Remove(world, {"/sys/block/" + path + "/holders/" + map.name});
      world.ChangeDevice("/dev/" + path, [](FakeDevice& device) { device.holders.clear(); });
    }
    Remove(world, {"/sys/block/" + map.name, "/sys/devices/virtual/block/" + map.name,
                   "/dev/mapper/" + map.alias, "/dev/" + map.name});
  }

  FakeKernel& kernel_;
  std::shared_ptr<std::vector<Map>> maps_ = std::make_shared<std::vector<Map>>();
};

}  // namespace volumed
