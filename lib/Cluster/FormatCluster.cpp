//===- FormatCluster.cpp - writes cluster.yaml ------------------------------===//
//
// What the reader reads back as the same cluster: numbers in base units, with
// all their digits.
//
//===----------------------------------------------------------------------===//

#include "autohet/Cluster/Cluster.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace autohet {

/// As few digits as give the same number.
static std::string exact(double value, llvm::StringRef unit = "") {
  std::string text;
  for (int digits : {4, 6, 9, 15, 17}) {
    text.clear();
    llvm::raw_string_ostream(text) << llvm::format("%.*g", digits, value);
    double back = 0;
    if (!llvm::StringRef(text).getAsDouble(back) && back == value)
      break;
  }
  return unit.empty() ? text : text + " " + unit.str();
}

static std::string linkText(const Link &link) {
  return "{bandwidth: " + exact(link.bandwidth_bytes_per_s, "B/s") +
         ", latency: " + exact(link.latency_s, "s") + "}";
}

static void writeKind(const DeviceKind &kind, llvm::raw_ostream &os) {
  os << "  " << kind.name << ":\n";
  auto rate = [&](llvm::StringRef key, double value, llvm::StringRef unit) {
    if (value > 0)
      os << "    " << key << ": " << exact(value, unit) << "\n";
  };
  rate("memory", kind.memory_bytes, "B");
  rate("flops", kind.flops_per_s, "FLOP/s");
  rate("flops_bf16", kind.flops_bf16_per_s, "FLOP/s");
  rate("flops_fp16", kind.flops_fp16_per_s, "FLOP/s");
  rate("memory_bandwidth", kind.memory_bandwidth_bytes_per_s, "B/s");
  os << "    overhead: " << exact(kind.overhead_s, "s") << "\n";
  rate("relative_speed", kind.relative_speed, "");
  os << "    threads: " << kind.threads << "\n";
  rate("price", kind.usd_per_hour, "USD/h");
  if (kind.target == Target())
    return;
  os << "    target: {";
  if (!kind.target.triple.empty())
    os << "triple: " << kind.target.triple
       << (kind.target.features.empty() ? "" : ", ");
  if (!kind.target.features.empty())
    os << "features: [" << llvm::join(kind.target.features, ", ") << "]";
  os << "}\n";
}

std::string formatCluster(const Cluster &cluster) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "format: 1\nkinds:\n";
  for (const DeviceKind &kind : cluster.kinds)
    writeKind(kind, os);
  os << "nodes:\n";
  for (const Node &node : cluster.nodes) {
    os << "  - name: " << node.name << "\n";
    if (!node.address.empty())
      os << "    address: " << node.address << "\n";
    if (node.nic_bytes_per_s > 0)
      os << "    nic: " << exact(node.nic_bytes_per_s, "B/s") << "\n";
    if (node.inside)
      os << "    link: " << linkText(*node.inside) << "\n";
    os << "    devices: [";
    llvm::ArrayRef<Device> devices =
        cluster.devices().slice(node.first_device, node.device_count);
    for (size_t begin = 0, end; begin < devices.size(); begin = end) {
      for (end = begin + 1;
           end < devices.size() && devices[end].kind == devices[begin].kind;)
        ++end;
      os << (begin ? ", " : "")
         << "{kind: " << cluster.kinds[devices[begin].kind].name
         << ", count: " << end - begin << "}";
    }
    os << "]\n";
  }
  os << "links:\n  intra_node: " << linkText(cluster.intra_node)
     << "\n  inter_node: " << linkText(cluster.inter_node) << "\n";
  if (!cluster.overrides.empty())
    os << "  overrides:\n";
  for (const LinkOverride &one : cluster.overrides)
    os << "    - {from: \"" << one.from << "\", to: \"" << one.to
       << "\", bandwidth: " << exact(one.link.bandwidth_bytes_per_s, "B/s")
       << ", latency: " << exact(one.link.latency_s, "s") << "}\n";
  return text;
}

} // namespace autohet
