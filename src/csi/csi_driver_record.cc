#include "csi/csi_driver_record.h"

#include <algorithm>
#include <utility>

#include "operation/record_codec.h"

namespace volumed {
namespace {

bool Has(const std::vector<int32_t>& sorted, int32_t capability) {
  return std::binary_search(sorted.begin(), sorted.end(), capability);
}

struct CsiDriverRow {
  CsiDriverRecord record{};
  static void WireFields(auto& v, auto& m) {
    auto& facts = m.record.facts;
    v.Text(1, facts.name);
    v.Text(2, facts.endpoint);
    v.Text(3, m.record.socket);
    v.Text(4, facts.node_id);
    v.Text(5, facts.vendor_version);
    v(6, facts.plugin_capabilities);
    v(7, facts.node_capabilities);
    v(8, facts.controller_capabilities);
    v(9, facts.topology);
    v(10, facts.max_volumes);
    v(11, m.record.last_ready_unix_ms);
    v.Text(12, facts.controller_endpoint);
    v(14, facts.expansion);
    v.Text(15, facts.version);
  }
};

}  // namespace

bool CsiDriverFacts::HasPlugin(int32_t capability) const {
  return Has(plugin_capabilities, capability);
}
bool CsiDriverFacts::HasNode(int32_t capability) const {
  return Has(node_capabilities, capability);
}
bool CsiDriverFacts::HasController(int32_t capability) const {
  return Has(controller_capabilities, capability);
}

Record EncodeRecord(const CsiDriverRecord& record) {
  return EncodeRow(kCsiDriverRecordKind, record.facts.name, CsiDriverRow{record},
                   kCsiDriverRecordVersion);
}

Result<CsiDriverRecord> DecodeCsiDriverRecord(const Record& row) {
  ASSIGN_OR_RETURN(CsiDriverRow read,
                   ParseRow<CsiDriverRow>(row, kCsiDriverRecordKind, kCsiDriverRecordVersion));
  RETURN_IF_ERROR(BelongsUnder(read.record.facts.name, row, !read.record.facts.name.empty()));
  return std::move(read.record);
}

}  // namespace volumed
