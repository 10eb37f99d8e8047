# Our CMake verbs. Each says what a folder is, so that a folder's own file is a
# list of sources and nothing else.
#
#   autohet_add_dialect(Het SOURCES ... [INTERFACES a b] [ATTRS] [ENUMS])
#   autohet_add_passes(Model SOURCES ... LINK ...)
#   autohet_add_library(AutohetCluster SOURCES ... LINK ... [MLIR ...])
#   autohet_add_tool(autohet-opt SOURCES ... LINK ...)
#   autohet_add_unittest(ClusterTests SOURCES ... LINK ...)

set(AUTOHET_COMPILE_OPTIONS -Wall -Wextra -Wno-unused-parameter)
if(AUTOHET_WERROR)
  # libstdc++ 12 deprecates what its own std::stable_sort calls.
  list(APPEND AUTOHET_COMPILE_OPTIONS -Werror -Wno-error=deprecated-declarations)
endif()
# What every MLIR-facing file of ours includes, compiled once.
function(autohet_add_precompiled_header)
  file(WRITE ${CMAKE_BINARY_DIR}/pch/empty.cpp "")
  add_library(AutohetPCH OBJECT ${CMAKE_BINARY_DIR}/pch/empty.cpp)
  autohet_mlir_flags(AutohetPCH)
  target_precompile_headers(AutohetPCH PRIVATE
    ${PROJECT_SOURCE_DIR}/cmake/Precompiled.h)
endfunction()

function(autohet_mlir_flags target)
  target_compile_options(${target} PRIVATE ${AUTOHET_COMPILE_OPTIONS}
    $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti -fno-exceptions>
    # ccache may only reuse objects built against a PCH without its time stamp.
    $<$<CXX_COMPILER_ID:Clang>:-Xclang -fno-pch-timestamp>)
endfunction()

# Of LLVM and MLIR a program has the shared libraries or, with STATIC_LLVM, what
# it needs of the archives: never both, which would register every command-line
# option twice.
set(AUTOHET_SHARED_LLVM
  "$<NOT:$<BOOL:$<TARGET_PROPERTY:AUTOHET_STATIC_LLVM>>>")

function(autohet_link_llvm target scope)
  target_link_libraries(${target} ${scope}
    $<${AUTOHET_SHARED_LLVM}:MLIR> $<${AUTOHET_SHARED_LLVM}:LLVM>)
endfunction()

function(autohet_add_library name)
  cmake_parse_arguments(ARG "NO_PCH" "" "SOURCES;LINK;MLIR;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  autohet_mlir_flags(${name})
  if(NOT ARG_NO_PCH)
    target_precompile_headers(${name} REUSE_FROM AutohetPCH)
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  # ARG_MLIR tells the reader which parts.
  autohet_link_llvm(${name} PUBLIC)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# Generates, under include/autohet/Dialect/<Name>/:
#   <Name>Dialect.{h,cpp}.inc, <Name>Ops.{h,cpp}.inc, <Name>Types.*, <Name>Attrs.*
#   <Name>Enums.*, and <Name>Interfaces.{h,cpp}.inc where <Name>Interfaces.td is.
function(autohet_add_dialect name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;MLIR" ${ARGN})
  include_directories(${PROJECT_SOURCE_DIR}/dialects)
  string(TOLOWER ${name} lower)
  set(LLVM_TARGET_DEFINITIONS ${name}Ops.td)
  mlir_tablegen(${name}Dialect.h.inc -gen-dialect-decls -dialect=${lower})
  mlir_tablegen(${name}Dialect.cpp.inc -gen-dialect-defs -dialect=${lower})
  mlir_tablegen(${name}Ops.h.inc -gen-op-decls -dialect=${lower})
  mlir_tablegen(${name}Ops.cpp.inc -gen-op-defs -dialect=${lower})
  mlir_tablegen(${name}Types.h.inc -gen-typedef-decls -typedefs-dialect=${lower})
  mlir_tablegen(${name}Types.cpp.inc -gen-typedef-defs -typedefs-dialect=${lower})
  mlir_tablegen(${name}Attrs.h.inc -gen-attrdef-decls -attrdefs-dialect=${lower})
  mlir_tablegen(${name}Attrs.cpp.inc -gen-attrdef-defs -attrdefs-dialect=${lower})
  mlir_tablegen(${name}Enums.h.inc -gen-enum-decls)
  mlir_tablegen(${name}Enums.cpp.inc -gen-enum-defs)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${name}Interfaces.td)
    set(LLVM_TARGET_DEFINITIONS ${name}Interfaces.td)
    mlir_tablegen(${name}Interfaces.h.inc -gen-op-interface-decls)
    mlir_tablegen(${name}Interfaces.cpp.inc -gen-op-interface-defs)
  endif()
  add_public_tablegen_target(Autohet${name}IncGen)
  set_property(GLOBAL APPEND PROPERTY AUTOHET_INCGEN Autohet${name}IncGen)
  set(doc_gen ${PROJECT_BINARY_DIR}/docs/${name}.md)
  file(GLOB definitions CONFIGURE_DEPENDS *.td)
  add_custom_command(OUTPUT ${doc_gen}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/docs
    COMMAND ${MLIR_TABLEGEN_EXE} -gen-dialect-doc -dialect=${lower}
            -I ${PROJECT_SOURCE_DIR}/dialects -I ${MLIR_INCLUDE_DIRS}
            ${CMAKE_CURRENT_SOURCE_DIR}/${name}Ops.td -o ${doc_gen}
    DEPENDS ${definitions} VERBATIM)
  set_property(GLOBAL APPEND PROPERTY AUTOHET_DOCS ${doc_gen})
  autohet_add_library(Autohet${name}Dialect SOURCES ${ARG_SOURCES}
    LINK ${ARG_LINK} MLIR ${ARG_MLIR})
  get_property(incgen GLOBAL PROPERTY AUTOHET_INCGEN)
  add_dependencies(Autohet${name}Dialect ${incgen})
endfunction()

# Generates Passes.h.inc beside <Phase>'s headers.
function(autohet_add_passes phase)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;MLIR" ${ARGN})
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  mlir_tablegen(Passes.h.inc -gen-pass-decls -name ${phase})
  add_public_tablegen_target(Autohet${phase}PassesIncGen)
  set(doc_gen ${PROJECT_BINARY_DIR}/docs/${phase}Passes.md)
  add_custom_command(OUTPUT ${doc_gen}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/docs
    COMMAND ${MLIR_TABLEGEN_EXE} -gen-pass-doc -I ${MLIR_INCLUDE_DIRS}
            ${CMAKE_CURRENT_SOURCE_DIR}/Passes.td -o ${doc_gen}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/Passes.td VERBATIM)
  set_property(GLOBAL APPEND PROPERTY AUTOHET_DOCS ${doc_gen})
  get_property(incgen GLOBAL PROPERTY AUTOHET_INCGEN)
  autohet_add_library(Autohet${phase}Passes SOURCES ${ARG_SOURCES}
    LINK ${ARG_LINK} MLIR MLIRPass MLIRTransforms ${ARG_MLIR}
    DEPENDS Autohet${phase}PassesIncGen ${incgen})
endfunction()

# RUNTIME_ONLY: links no LLVM or MLIR, sees the runtime's inner headers, and may
# use exceptions. STATIC_LLVM: starts in 2 ms, where loading the shared libraries
# takes 25; for tools that are soon done.
function(autohet_add_tool name)
  cmake_parse_arguments(ARG "NO_PCH;RUNTIME_ONLY;STATIC_LLVM" "" "SOURCES;LINK;MLIR" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_property(GLOBAL APPEND PROPERTY AUTOHET_TOOLS ${name})
  if(ARG_RUNTIME_ONLY)
    target_compile_options(${name} PRIVATE ${AUTOHET_COMPILE_OPTIONS})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/runtime)
    target_link_libraries(${name} PRIVATE ${ARG_LINK})
    return()
  endif()
  autohet_mlir_flags(${name})
  if(NOT ARG_NO_PCH)
    target_precompile_headers(${name} REUSE_FROM AutohetPCH)
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  # The precompiled header is built with -fPIC, which -fPIE would not match.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  autohet_link_llvm(${name} PRIVATE)
  if(ARG_STATIC_LLVM)
    file(GLOB archives ${LLVM_LIBRARY_DIR}/libMLIR*.a ${LLVM_LIBRARY_DIR}/libLLVM*.a)
    set_target_properties(${name} PROPERTIES AUTOHET_STATIC_LLVM ON)
    target_link_libraries(${name} PRIVATE ${archives})
    # What is left refers to nothing outside, such as zstd.
    target_link_options(${name} PRIVATE -Wl,--gc-sections)
  endif()
endfunction()

# A GoogleTest executable. RUNTIME_ONLY: links no MLIR and may use exceptions.
function(autohet_add_unittest name)
  cmake_parse_arguments(ARG "RUNTIME_ONLY" "" "SOURCES;LINK;MLIR" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  if(NOT ARG_RUNTIME_ONLY)
    target_compile_options(${name} PRIVATE -fno-rtti)
    target_link_libraries(${name} PRIVATE MLIR LLVM)
  endif()
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/unit)
  set_property(GLOBAL APPEND PROPERTY AUTOHET_UNITTESTS ${name})
endfunction()
