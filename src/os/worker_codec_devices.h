// The part of os/worker_codec.h that is about block devices, and what all parts share. Pure.
#pragma once

#include <string>
#include <vector>

#include "os/kernel.h"
#include "worker.pb.h"

namespace volumed::worker_codec {

template <typename Repeated>
std::vector<std::string> ReadList(const Repeated& from) {
  return {from.begin(), from.end()};
}

template <typename Repeated>
void WriteList(const std::vector<std::string>& from, Repeated* to) {
  to->Reserve(static_cast<int>(from.size()));
  for (const std::string& text : from) *to->Add() = text;
}

void Write(const SafePath& from, worker::SafePath& to);
SafePath Read(const worker::SafePath& from);
void Write(const DeviceIdentity& from, worker::DeviceIdentity& to);
DeviceIdentity Read(const worker::DeviceIdentity& from);
void Write(const StorageObject& from, worker::StorageObject& to);
StorageObject Read(const worker::StorageObject& from);

void Fill(const ProbeDevice& from, worker::Request& to);
void Fill(const FormatDevice& from, worker::Request& to);
void Fill(const CheckFilesystem& from, worker::Request& to);
void Fill(const CheckDeviceUse& from, worker::Request& to);
void Fill(const FlushDevice& from, worker::Request& to);
ProbeDevice Read(const worker::ProbeDevice& from);
FormatDevice Read(const worker::FormatDevice& from);
void Fill(const GrowFilesystem& from, worker::Request& to);
CheckFilesystem Read(const worker::CheckFilesystem& from);
CheckDeviceUse Read(const worker::CheckDeviceUse& from);
GrowFilesystem Read(const worker::GrowFilesystem& from);
FlushDevice Read(const worker::FlushDevice& from);
void Fill(const IdentifyStorage& from, worker::Request& to);
IdentifyStorage Read(const worker::IdentifyStorage& from);
void Fill(const MarkStorage& from, worker::Request& to);
MarkStorage Read(const worker::MarkStorage& from);

void Fill(const DeviceProbe& from, worker::Answer& to);
void Fill(const FilesystemCheck& from, worker::Answer& to);
void Fill(const DeviceUsers& from, worker::Answer& to);
void Fill(const IdentifiedDevice& from, worker::Answer& to);
DeviceProbe Read(const worker::DeviceProbe& from);
// Without the descriptor, which is no part of the message.
IdentifiedDevice Read(const worker::IdentifiedDevice& from);
void Fill(const FilesystemGrowth& from, worker::Answer& to);
FilesystemCheck Read(const worker::FilesystemCheck& from);
DeviceUsers Read(const worker::DeviceUsers& from);
DeviceFacts Read(const worker::DeviceFacts& from);
FilesystemGrowth Read(const worker::FilesystemGrowth& from);
void Fill(const StorageIdentity& from, worker::Answer& to);
// Without the type, whose numbers the other answers share.
StorageIdentity Read(const worker::StorageIdentity& from);

}  // namespace volumed::worker_codec
