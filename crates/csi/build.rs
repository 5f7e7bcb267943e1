//! Compiles the wire formats. `protox` is a compiler in Rust, so no `protoc` is needed on the machine.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = protox::compile(["csi.proto", "pluginregistration.proto", "csiregistration.proto"], ["proto"])?;
    prost_build::Config::new()
        // Ordered maps: rules must not depend on a hash seed.
        .btree_map(["."])
        // Requests carry secrets. What cannot be printed cannot be logged; `Call` prints method and volume id.
        .skip_debug(["."])
        .type_attribute(".", "#[allow(missing_docs)]")
        .compile_fds(files)?;
    println!("cargo:rerun-if-changed=proto");
    Ok(())
}
