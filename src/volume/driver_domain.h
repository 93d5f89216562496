// The fault domain of volumes that a driver works for: what waits for its answers hangs with the
// driver, while effects on the node hang with the filesystem or the device that they touch.
//
// Threads: any. Blocks: never.
#pragma once

#include <string>
#include <string_view>

namespace volumed {

inline constexpr std::string_view kDriverDomainPrefix = "csi:";

// What an Error is about (Error::about) for which somebody has to act, although it is tried again:
// there is no connection to the driver or its controller, it did not answer in time, or lied; or
// nobody has made, or followed, the VolumeAttachment by which a volume is attached.
inline constexpr char kDriverAway[] = "driver away";
inline constexpr char kAttacherAway[] = "attacher away";
// Likewise: the disk of the node that has the volume, or is to have it, is not there.
inline constexpr char kStorageAway[] = "storage away";

// "csi:disks.example.com", the domain of all volumes of this CSI driver.
inline std::string DriverDomain(const std::string& driver) {
  return std::string(kDriverDomainPrefix) + driver;
}

// Whether the domain, or lane, is a driver's.
inline bool IsDriverDomain(std::string_view domain) {
  return domain.starts_with(kDriverDomainPrefix);
}

// "CSI driver disks.example.com", for people; empty if the domain is no driver's.
inline std::string DriverDomainName(std::string_view domain) {
  if (!IsDriverDomain(domain)) return "";
  return "CSI driver " + std::string(domain.substr(kDriverDomainPrefix.size()));
}

// How metrics name the plugin of a volume with this domain: "kubernetes.io/csi:disks.example.com",
// and the plugin's name alone if the domain is no driver's. Source: kubernetes
// pkg/volume/util/metrics.go@v1.36.2 (GetFullQualifiedPluginNameForVolume).
inline std::string GetFullQualifiedPluginName(const std::string& plugin, std::string_view domain) {
  if (plugin.empty() || !IsDriverDomain(domain)) return plugin;
  return plugin + ":" + std::string(domain.substr(kDriverDomainPrefix.size()));
}

// What effects on the node hang with (CallOptions::domain) that an operation makes whose volume has
// this domain: it, or in a driver's place the path of the volume, by which its filesystem is found.
// Else one dead mount would take the workers of all volumes of the driver. An empty path stands for
// the agent's own filesystem and for the devices that the effects name.
inline std::string EffectDomain(const std::string& domain, const std::string& path) {
  return IsDriverDomain(domain) ? path : domain;
}

}  // namespace volumed
