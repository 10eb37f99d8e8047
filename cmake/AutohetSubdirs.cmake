# Adds every child folder that has a CMakeLists.txt, so that a new tool, library
# or test needs no edit elsewhere.
function(autohet_add_subdirectories)
  file(GLOB children CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  foreach(child ${children})
    get_filename_component(folder ${child} DIRECTORY)
    add_subdirectory(${folder})
  endforeach()
endfunction()
