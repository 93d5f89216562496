// A recorded sysfs tree of SCSI disks on a FakeKernel, and what Linux does when its attributes are
// written: a deleted disk goes, a flushed map goes.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "fakes/fake_kernel.h"

namespace volumed {

struct TreeDisk {
  std::string name;     // "sdb"
  std::string address;  // "3:0:0:1"
  std::string rport = "rport-3:0-0";
  std::string wwid = "naa.6001405a1b2c3d4e";
  FakeDevice device = {};
};

// Passes everything to the FakeKernel; afterwards what was written takes effect, also where the
// call ended the agent after it was made.
class ScsiTree final : public Kernel {
 public:
  explicit ScsiTree(FakeKernel& kernel, std::string sys = "/sys", std::string dev = "/dev")
      : kernel_(kernel), sys_(std::move(sys)), dev_(std::move(dev)) {}

  void AddHost(int host) {
    const std::string name = "host" + std::to_string(host);
    kernel_.AddFile(sys_ + "/devices/pci0/" + name + "/scsi_host/" + name + "/scan", "");
    kernel_.AddSymlink(sys_ + "/class/scsi_host/" + name,
                       "../../devices/pci0/" + name + "/scsi_host/" + name);
  }
  // A port of an array, as the FC transport has it.
  void AddRemotePort(const std::string& rport, const std::string& port_name) {
    const std::string dir = "/devices/pci0/host3/" + rport + "/fc_remote_ports/" + rport;
    kernel_.AddFile(sys_ + dir + "/port_name", port_name + "\n");
    kernel_.AddSymlink(sys_ + "/class/fc_remote_ports/" + rport, "../.." + dir);
  }
  void AddDisk(const TreeDisk& disk) {
    kernel_.AddDevice(dev_ + "/" + disk.name, disk.device);
    const std::string dir = Directory(disk);
    const FakeDevice made = kernel_.Device(dev_ + "/" + disk.name);
    kernel_.AddFile(sys_ + dir + "/wwid", disk.wwid + "\n");
    kernel_.AddFile(sys_ + dir + "/state", "running\n");
    kernel_.AddFile(sys_ + dir + "/delete", "");
    kernel_.AddFile(sys_ + dir + "/rescan", "");
    kernel_.AddFile(sys_ + dir + "/block/" + disk.name + "/dev", Number(made));
    kernel_.AddDirectory(sys_ + dir + "/block/" + disk.name + "/holders");
    kernel_.AddDirectory(sys_ + dir + "/block/" + disk.name + "/slaves");
    kernel_.AddSymlink(sys_ + dir + "/block/" + disk.name + "/device", "../../../" + disk.address);
    kernel_.AddSymlink(sys_ + "/block/" + disk.name, ".." + dir + "/block/" + disk.name);
    disks_.push_back(disk);
  }
  // A device-mapper device made of disks that are there. `uuid`: "mpath-36001..", "LVM-..".
  void AddMap(const std::string& name, const std::string& alias, const std::string& uuid,
              const std::vector<std::string>& paths, FakeDevice device = {}) {
    kernel_.AddDevice(dev_ + "/" + name, std::move(device));
    const std::string dir = sys_ + "/devices/virtual/block/" + name;
    kernel_.AddFile(dir + "/dev", Number(kernel_.Device(dev_ + "/" + name)));
    kernel_.AddFile(dir + "/dm/uuid", uuid + "\n");
    kernel_.AddDirectory(dir + "/holders");
    for (const std::string& path : paths) {
      kernel_.AddSymlink(dir + "/slaves/" + path, "../../../../block/" + path);
      kernel_.AddSymlink(sys_ + "/block/" + path + "/holders/" + name, "../" + name);
      kernel_.ChangeDevice(dev_ + "/" + path, [&](FakeDevice& d) { d.holders = {name}; });
    }
    kernel_.AddSymlink(sys_ + "/block/" + name, "../devices/virtual/block/" + name);
    kernel_.AddSymlink(dev_ + "/mapper/" + alias, "../" + name);
    maps_.push_back({name, alias, paths});
  }
  // multipath(8) and multipathd(8) are installed. A flush that is to fail answers `flush_status`.
  void AddMultipathTools() {
    kernel_.AddProgram("/usr/sbin/multipath", [this](const std::vector<std::string>& arguments) {
      commands_.push_back(Join(arguments, " "));
      if (flush_status_ != 0) return ProgramEnd{flush_status_, "map in use\n"};
      flushed_.insert(arguments.back());
      return ProgramEnd{};
    });
    kernel_.AddProgram("/usr/sbin/multipathd", [this](const std::vector<std::string>& arguments) {
      commands_.push_back(Join(arguments, " "));
      return ProgramEnd{resize_status_, resize_status_ == 0 ? "ok\n" : "fail\n"};
    });
  }
  void SetState(const std::string& disk, const std::string& state) {
    kernel_.AddFile(sys_ + "/block/" + disk + "/device/state", state + "\n");
  }

  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    struct Settling {
      ScsiTree& tree;
      ~Settling() { tree.Settle(); }
    } settling{*this};
    return kernel_.Do(request, options);
  }
  // What was written to attributes and told to tools takes effect.
  void Settle() {
    std::erase_if(maps_, [this](const Map& map) {
      if (flushed_.erase(dev_ + "/" + map.name) == 0) return false;
      RemoveMap(map);
      return true;
    });
    std::erase_if(disks_, [this](const TreeDisk& disk) {
      if (Find(disk, "/delete") != "1") return false;
      RemoveDisk(disk);
      return true;
    });
  }

  bool HasBlock(const std::string& name) const { return kernel_.Exists(sys_ + "/block/" + name); }
  std::string Attribute(const std::string& path) const {
    return kernel_.Find(sys_ + "/" + path, true).content;
  }

  std::vector<std::string> commands_;  // that the tools were run with
  int flush_status_ = 0;
  int resize_status_ = 0;

 private:
  struct Map {
    std::string name, alias;
    std::vector<std::string> paths;
  };
  static std::string Number(const FakeDevice& device) {
    return std::to_string(device.identity.device_major) + ":" +
           std::to_string(device.identity.device_minor) + "\n";
  }
  static std::string Directory(const TreeDisk& disk) {
    return "/devices/pci0/host3/" + disk.rport + "/target3:0:0/" + disk.address;
  }
  std::string Find(const TreeDisk& disk, const std::string& attribute) const {
    return kernel_.Find(sys_ + Directory(disk) + attribute).content;
  }
  void RemoveMap(const Map& map) {
    for (const std::string& path : map.paths) {
      if (!HasBlock(path)) continue;
      kernel_.Remove(sys_ + "/block/" + path + "/holders/" + map.name);
      kernel_.ChangeDevice(dev_ + "/" + path, [](FakeDevice& d) { d.holders.clear(); });
    }
    for (const std::string& gone :
         {sys_ + "/block/" + map.name, sys_ + "/devices/virtual/block/" + map.name,
          dev_ + "/" + map.name, dev_ + "/mapper/" + map.alias}) {
      kernel_.Remove(gone);
    }
  }
  void RemoveDisk(const TreeDisk& disk) {
    kernel_.Remove(sys_ + "/block/" + disk.name);
    kernel_.Remove(sys_ + Directory(disk));
    kernel_.Remove(dev_ + "/" + disk.name);
  }

  FakeKernel& kernel_;
  const std::string sys_, dev_;
  std::vector<TreeDisk> disks_;
  std::vector<Map> maps_;
  std::set<std::string> flushed_;
};

}  // namespace volumed
