use std::path::PathBuf;

use crate::{
    diagnostic::{Class, Diagnostic},
    schema::FixedImage,
};

/// Which images `images.get_image` resolves to.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Image arguments")]
pub(in crate::cli) struct ImageFlags {
    /// Pin an image; namespace, Kind/name and container restrict where
    #[arg(long, short = 'F', value_name = "IMAGE[:NAMESPACE[:KIND/NAME[:CONTAINER]]]=RESULT")]
    pub(in crate::cli) fixed_image: Vec<String>,

    /// Pin the images that a file lists, in the format of `list-images`
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) fixed_images_file: Option<PathBuf>,
}

impl ImageFlags {
    /// The images given by `--fixed-image`, in order.
    pub(in crate::cli) fn pinned(&self) -> Result<Vec<FixedImage>, Diagnostic> {
        self.fixed_image.iter().map(|text| parse(text)).collect()
    }
}

fn parse(text: &str) -> Result<FixedImage, Diagnostic> {
    let fail = || {
        Diagnostic::new(Class::Project, format!("--fixed-image {text:?} cannot be read"))
            .with_expected("image[:namespace[:Kind/name[:container]]]=result")
            .with_hint(
                "an image whose name has a colon or `=` can be pinned with --fixed-images-file",
            )
    };
    let (image, result) = text.split_once('=').ok_or_else(fail)?;
    let mut parts = image.split(':').map(str::to_owned);
    let fixed = FixedImage {
        image: parts.next(),
        result_image: result.to_owned(),
        namespace: parts.next(),
        deployment: parts.next(),
        container: parts.next(),
        ..FixedImage::default()
    };
    if result.contains('=') || parts.next().is_some() {
        return Err(fail());
    }
    Ok(fixed)
}
