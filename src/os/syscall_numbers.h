// System calls that are newer than Debian 12's headers. Since Linux 5.1 new calls have one number
// on every architecture but alpha. Source: Linux scripts/syscall.tbl.
#pragma once

namespace volumed {

constexpr long kSysQuotactlFd = 443;  // Linux 5.14
constexpr long kSysFchmodat2 = 452;   // Linux 6.6
constexpr long kSysStatmount = 457;   // Linux 6.8
constexpr long kSysListmount = 458;   // Linux 6.8

}  // namespace volumed
