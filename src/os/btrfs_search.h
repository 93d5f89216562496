// BtrfsSearch: a question to the trees of a btrfs, for one item, and its answer
// (BTRFS_IOC_TREE_SEARCH_V2, which needs CAP_SYS_ADMIN). Items are as they lie on the disk.
//
// Private to tree_quota.cc and subvolume.cc. Threads: one. Blocks: on the disk.
// Source: Linux include/uapi/linux/btrfs.h, include/uapi/linux/btrfs_tree.h.
#pragma once

#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <sys/ioctl.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>

namespace volumed {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

class BtrfsSearch {
 public:
  // The item of this type, and of the first such key.
  BtrfsSearch(uint64_t tree, uint32_t type) {
    head().buf_size = bytes_.size() - sizeof(btrfs_ioctl_search_args_v2);
    key().tree_id = tree;
    key().min_type = key().max_type = type;
    key().max_transid = std::numeric_limits<uint64_t>::max();
    key().nr_items = 1;
  }

  btrfs_ioctl_search_key& key() { return head().key; }
  // False, and errno, if it was refused. `file` is any that lies on the filesystem.
  bool Run(int file) { return ::ioctl(file, BTRFS_IOC_TREE_SEARCH_V2, &head()) == 0; }
  bool found() { return key().nr_items != 0; }

  // False if the item is shorter than that. REQUIRES: found().
  template <typename Item>
  bool Read(Item& item) {
    const char* const items = bytes_.data() + sizeof(btrfs_ioctl_search_args_v2);
    btrfs_ioctl_search_header header = {};
    std::memcpy(&header, items, sizeof(header));
    if (header.len < sizeof(item)) return false;
    std::memcpy(&item, items + sizeof(header), sizeof(item));
    return true;
  }

 private:
  btrfs_ioctl_search_args_v2& head() {
    return *reinterpret_cast<btrfs_ioctl_search_args_v2*>(bytes_.data());
  }

  // The items follow the head.
  alignas(btrfs_ioctl_search_args_v2) std::array<char, 1024> bytes_ = {};
};

}  // namespace volumed
