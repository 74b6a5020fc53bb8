//! Results as a Parquet file: a column of doubles each, units among the file's key-value data under `units`, as JSON by name.
//!
//! Input: rows in the order of time. Output: the file, whole once [`Table::finish`] was called; a run that fails or is interrupted
//! calls it, too.

use mbs_engine::simulation::Column;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Values kept in memory before they are written as a group of rows.
const GROUP: usize = 1 << 22;

/// A file that rows are written to.
pub(crate) struct Table {
    writer: Option<SerializedFileWriter<File>>,
    columns: Vec<Vec<f64>>,
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(inner) => *inner,
            Err(inner) => io::Error::other(inner),
        },
        other => io::Error::other(other),
    }
}

impl Table {
    /// Begins a file.
    pub(crate) fn new(file: File, columns: &[Column]) -> io::Result<Table> {
        let column = |column: &Column| {
            let column = Type::primitive_type_builder(&column.name, Physical::DOUBLE);
            column.with_repetition(Repetition::REQUIRED).build().map(Arc::new)
        };
        let fields = columns.iter().map(column).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let schema = Type::group_type_builder("results").with_fields(fields).build().map_err(failed)?;
        let known = columns.iter().filter(|column| !column.unit.is_empty());
        let known: serde_json::Map<_, _> =
            known.map(|column| (column.name.clone(), column.unit.as_str().into())).collect();
        let units = KeyValue::new("units".into(), serde_json::Value::from(known).to_string());
        let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![units])).build();
        let writer =
            SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).map_err(failed)?;
        Ok(Table { writer: Some(writer), columns: vec![Vec::new(); columns.len()] })
    }

    /// Takes a row: the time, then parts of the other columns.
    pub(crate) fn row(&mut self, t: f64, parts: &[&[f64]]) -> io::Result<()> {
        let values = [t].into_iter().chain(parts.iter().copied().flatten().copied());
        self.columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
        let full = self.columns.len() * self.columns.first().map_or(0, Vec::len) >= GROUP;
        if full { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        if self.columns.first().is_none_or(Vec::is_empty) {
            return Ok(());
        }
        let mut group = writer.next_row_group().map_err(failed)?;
        for values in &mut self.columns {
            if let Some(mut column) = group.next_column().map_err(failed)? {
                column.typed::<DoubleType>().write_batch(values, None, None).map_err(failed)?;
                column.close().map_err(failed)?;
            }
            values.clear();
        }
        group.close().map_err(failed)?;
        Ok(())
    }

    /// Writes what is left, and the end of the file.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.write_group()?;
        match self.writer.take() {
            Some(writer) => writer.close().map(|_| ()).map_err(failed),
            None => Ok(()),
        }
    }
}

/// Writes a file at once: columns of numbers, then one of texts, under their names.
pub(crate) fn write(file: File, names: &[String], columns: &[Vec<f64>], texts: &[&str]) -> io::Result<()> {
    let field = |(i, name): (usize, &String)| {
        let field = match i < columns.len() {
            true => Type::primitive_type_builder(name, Physical::DOUBLE),
            false => Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
                .with_logical_type(Some(LogicalType::String)),
        };
        field.with_repetition(Repetition::REQUIRED).build().map(Arc::new)
    };
    let fields = names.iter().enumerate().map(field).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let schema = Type::group_type_builder("results").with_fields(fields).build().map_err(failed)?;
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::default()).map_err(failed)?;
    let mut group = writer.next_row_group().map_err(failed)?;
    for values in columns {
        if let Some(mut column) = group.next_column().map_err(failed)? {
            column.typed::<DoubleType>().write_batch(values, None, None).map_err(failed)?;
            column.close().map_err(failed)?;
        }
    }
    if let Some(mut column) = group.next_column().map_err(failed)? {
        let texts: Vec<ByteArray> = texts.iter().map(|text| ByteArray::from(*text)).collect();
        column.typed::<ByteArrayType>().write_batch(&texts, None, None).map_err(failed)?;
        column.close().map_err(failed)?;
    }
    group.close().map_err(failed)?;
    writer.close().map(|_| ()).map_err(failed)
}
