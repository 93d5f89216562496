// The rows of those records that are not in their rows what they are in memory: a kind of object or
// an amount is a text there, which this program may not understand, and a map is a list. Every
// other record declares its fields itself. Only the files that encode and decode records include
// this.
//
// A row holds its record, and beside it what it has in its own way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/wire_fields.h"
#include "operation/object_record.h"
#include "operation/storage_record.h"
#include "operation/volume_record.h"

namespace volumed {

// A record about an object. The record declares its fields but for the object. A kind that this
// program does not know makes the row unreadable.
template <typename T>
struct ObjectRow {
  T record{};
  std::string kind{};
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.kind);
    v.Text(2, m.record.object.name_space);
    v.Text(3, m.record.object.name);
    T::FieldsBesideObject(v, m.record);
    v.NotSent(m.record.object.kind);
  }
};

// An element of ObjectSourceRecord::unproven.
struct UnprovenAbsence {
  ObjectKey object{};
  std::string reason{};
  static void FieldsBesideObject(auto& v, auto& m) { v.Text(4, m.reason); }
};

// The row of an ObjectSourceRecord; its map of absences is a list here.
struct ObjectSourceRow {
  ObjectSourceRecord record{};
  std::vector<ObjectRow<UnprovenAbsence>> unproven{};
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.record.name);
    v.Text(2, m.record.directory.filesystem_type);
    v.Text(3, m.record.directory.filesystem_uuid);
    v(4, m.record.directory.inode);
    v(5, m.record.directory.birth_unix_nanos);
    v(6, m.record.directory.changed_unix_nanos);
    v(7, m.unproven);
    v.NotSent(m.record.unproven);
  }
};

template <>
struct WireFieldsOf<ClaimCondition> {
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.type);
    v.Text(2, m.status);
    v.Text(3, m.reason);
    v.Text(4, m.message);
    v(5, m.last_transition_unix_millis);
  }
};

// The amounts are as Kubernetes writes them. A text that is no amount makes the whole row
// unreadable.
struct ClaimResizeRow {
  ClaimResize resize{};
  std::string capacity{};
  std::string allocated{};        // "" if there is none
  std::string volume_capacity{};  // likewise
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.capacity);
    v.Text(2, m.allocated);
    v.Text(3, m.resize.status);
    v(4, m.resize.conditions);
    v.Text(5, m.resize.seen);
    v.Text(6, m.volume_capacity);
    v.NotSent(m.resize.capacity);
    v.NotSent(m.resize.allocated);
    v.NotSent(m.resize.volume_capacity);
  }
};

// The row of a ClaimBindingRecord; the amounts of its resize are texts here.
struct ClaimBindingRow {
  ClaimBindingRecord record{};
  std::optional<ClaimResizeRow> resize{};
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.record.binding.volume_name);
    v.Text(2, m.record.binding.claim.name_space);
    v.Text(3, m.record.binding.claim.name);
    v.Text(4, m.record.binding.claim_uid);
    v(5, m.record.binding.state);
    v.Text(6, m.record.volume_json);
    v(7, m.record.deleted);
    v(8, m.resize);
    v.Text(9, m.record.pod_uid);
    v.NotSent(m.record.resize);
  }
};

// A file or directory whose fields lie in the message around it.
void StorageObjectFields(uint32_t first, auto& v, auto& object) {
  v(first, object.fs_type);
  v(first + 1, object.fs_uuid);
  v(first + 2, object.inode);
  v(first + 3, object.handle);
}

// An element of StorageOwnerRecord::files.
struct StorageFileRow {
  StorageFile file{};
  static void WireFields(auto& v, auto& m) {
    v(1, m.file.path);
    StorageObjectFields(2, v, m.file.object);
  }
};

// The row of a StorageOwnerRecord; its files are messages of their own here.
struct StorageOwnerRow {
  StorageOwnerRecord record{};
  std::vector<StorageFileRow> files{};
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.record.volume);
    v(2, m.record.name);
    StorageObjectFields(3, v, m.record.object);
    v.Text(7, m.record.claim_uid);
    v(8, m.record.marked);
    v(9, m.record.mode);
    v(10, m.record.own_keys);
    v(11, m.record.within_keys);
    v(12, m.files);
    v.Text(13, m.record.boot_id);
    v(14, m.record.retained);
    v.NotSent(m.record.files);
  }
};

}  // namespace volumed
