import { pipeline } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { bounds } from '../config/bounds.ts';
import { FileUnreadable, KeysMissing, type RowShape, type ComparedRow, withoutKey } from './row.ts';
import { digestJson, digestText, type ValueDigest } from './value_digest.ts';
import { lineTooLong } from './json_lines.ts';

type Fields = readonly (string | null)[];

/**
 * Reads rows of CSV (RFC 4180) with a header and LF. Nothing between commas is null, `""` is the empty string.
 * @throws FileUnreadable, and errors of `chunks`
 */
export async function* readCsv(chunks: AsyncIterable<Buffer>, shape: RowShape): AsyncGenerator<ComparedRow> {
  let positions: { inserted_at: number; id: number; columns: readonly number[] } | undefined;
  let number = 0;
  for await (const fields of records(chunks)) {
    number += 1;
    if (!positions) {
      const positionOf = (name: string) => fields.indexOf(name);
      const columns = shape.columns.map(({ name }) => positionOf(name));
      const id = shape.id === null ? -1 : positionOf(shape.id);
      positions = { inserted_at: positionOf('_inserted_at'), id, columns };
      continue;
    }
    const values = positions.columns.map((position, index) =>
      valueOf(fields[position], shape.columns[index]?.type),
    );
    if (shape.id === null) {
      yield withoutKey(values);
      continue;
    }
    const inserted_at = fields[positions.inserted_at];
    const id = fields[positions.id];
    if (typeof inserted_at !== 'string' || typeof id !== 'string')
      throw new KeysMissing(`record ${number} has no _inserted_at or no ${shape.id}`);
    yield { inserted_at, id, values };
  }
}

async function* records(chunks: AsyncIterable<Buffer>): AsyncGenerator<Fields> {
  const parser = parse({
    record_delimiter: '\n',
    max_record_size: bounds.line.max,
    cast: (field, { quoting }) => (field === '' && !quoting ? null : field),
  });
  try {
    yield* pipeline(chunks, parser, () => undefined) as AsyncIterable<Fields>;
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    if (error.code === 'CSV_MAX_RECORD_SIZE') throw lineTooLong();
    // Its message may contain values.
    throw new FileUnreadable(`its records cannot be parsed (${error.code})`);
  }
}

function valueOf(field: string | null | undefined, type: string | undefined): ValueDigest | undefined {
  if (field === null || field === undefined) return field;
  return type === 'json' ? digestJson(Buffer.from(field)) : digestText(field);
}
