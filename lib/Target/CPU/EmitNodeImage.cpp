//===- EmitNodeImage.cpp - a node's programs as one object ------------------===//
//
// Tables are constants of an LLVM module: bytes for the blobs, pointers for the
// kernels. The only code is the executable's main, which is the runtime's.
//
//===----------------------------------------------------------------------===//

#include "autohet/Target/CPU/EmitNodeImage.h"

#include "autohet/Target/CPU/EmitObject.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace llvm;
using namespace autohet::cpu;

namespace {

class ImageModule {
public:
  explicit ImageModule(LLVMContext &context)
      : context(context),
        module(std::make_unique<Module>("autohet_node_image", context)),
        pointer(PointerType::get(context, 0)) {}

  /// A private constant of these bytes, 64-byte aligned as the loader asks.
  Constant *bytes(StringRef text, bool terminated) {
    return constant(ConstantDataArray::getString(context, text, terminated),
                    64);
  }

  Constant *pointers(ArrayRef<Constant *> elements) {
    return constant(
        ConstantArray::get(ArrayType::get(pointer, elements.size()), elements),
        8);
  }

  /// A kernel, defined in another object.
  Constant *kernel(StringRef symbol) {
    auto *type =
        FunctionType::get(Type::getInt64Ty(context), {pointer, pointer}, false);
    return cast<Constant>(
        module->getOrInsertFunction(symbol, type).getCallee());
  }

  Constant *number(uint32_t value) {
    return ConstantInt::get(Type::getInt32Ty(context), value);
  }

  /// A struct with C's layout and padding.
  Constant *record(ArrayRef<Constant *> fields) {
    return ConstantStruct::getAnon(context, fields);
  }

  /// `int main(int argc, char **argv)`, which is the runtime's.
  void addMain() {
    auto *integer = Type::getInt32Ty(context);
    auto *type = FunctionType::get(integer, {integer, pointer}, false);
    FunctionCallee runtime =
        module->getOrInsertFunction("autohet_node_main", type);
    auto *main =
        Function::Create(type, GlobalValue::ExternalLinkage, "main", *module);
    IRBuilder<> builder(BasicBlock::Create(context, "entry", main));
    builder.CreateRet(
        builder.CreateCall(runtime, {main->getArg(0), main->getArg(1)}));
  }

  Constant *constant(Constant *value, unsigned alignment,
                     StringRef exported = "") {
    auto *global =
        new GlobalVariable(*module, value->getType(), /*isConstant=*/true,
                           exported.empty() ? GlobalValue::PrivateLinkage
                                            : GlobalValue::ExternalLinkage,
                           value, exported);
    global->setAlignment(Align(alignment));
    return global;
  }

  LLVMContext &context;
  std::unique_ptr<Module> module;
  PointerType *pointer;
};

} // namespace

Expected<std::string> autohet::cpu::emitNodeImage(const NodeImage &image,
                                                  const TargetOptions &target) {
  LLVMContext context;
  ImageModule build(context);
  SmallVector<Constant *> devices;
  for (const DeviceImage &device : image.devices) {
    SmallVector<Constant *> kernels, names;
    for (const std::string &symbol : device.kernelSymbols)
      kernels.push_back(build.kernel(symbol));
    for (const std::string &name : device.kernelNames)
      names.push_back(build.bytes(name, true));
    // ah_device_image
    devices.push_back(build.record(
        {build.bytes(device.program, false), build.pointers(kernels),
         build.number(kernels.size()), build.pointers(names)}));
  }
  auto *table = build.constant(
      ConstantArray::get(
          ArrayType::get(devices.front()->getType(), devices.size()), devices),
      8);
  // ah_node_image
  build.constant(
      build.record({build.bytes(image.manifest, true), table,
                    build.number(image.devices.size()),
                    build.number(image.node), build.number(image.nodeCount)}),
      8, "autohet_node_image");
  build.addMain();
  return emitObject(*build.module, target, OptLevel::None);
}
