// CSI drivers, their sockets and their calls, as the control API shows them.
#pragma once

#include <map>
#include <string>

#include "agent.pb.h"
#include "base/clock.h"
#include "csi/csi_drivers.h"
#include "csi/registration.h"
#include "csi/rpc/csi_call.h"

namespace volumed {

// Texts that drivers have chosen are printable afterwards. `waiting`: how many operations wait for
// the driver. Pure.
void EncodeDriver(const DriverView& driver, int waiting, v1::Driver* out);
void EncodeUnusedController(const UnusedController& unused, v1::UnusedController* out);
void EncodeSocket(const RegisteredSocket& socket, const Clock& clock, v1::RegistrySocket* out);
void EncodeTracedCall(const CsiCallReport& report, v1::TracedCall* out);

}  // namespace volumed
