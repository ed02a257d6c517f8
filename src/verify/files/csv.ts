import { pipeline } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { digestBytes, digestText, withoutLineBreaks, type ValueDigest } from '../value_digest.ts';
import { FileUnreadable, type RowShape, type VerifiedRow, withoutKey } from '../row.ts';

type Fields = readonly (string | null)[];

/**
 * Rows of CSV as RFC 4180 has it, with a header and LF: nothing between commas is null, `""` is the empty string.
 * @throws FileUnreadable, and what `chunks` throws.
 */
export async function* readCsv(chunks: AsyncIterable<Buffer>, shape: RowShape): AsyncGenerator<VerifiedRow> {
  let locations: { inserted_at: number; id: number; columns: readonly number[] } | undefined;
  let number = 0;
  for await (const fields of records(chunks)) {
    number += 1;
    if (!locations) {
      const placeOf = (name: string) => fields.indexOf(name);
      const columns = shape.columns.map(({ name }) => placeOf(name));
      const id = shape.id === null ? -1 : placeOf(shape.id);
      locations = { inserted_at: placeOf('_inserted_at'), id, columns };
      continue;
    }
    const values = locations.columns.map((location, index) =>
      valueOf(fields[location], shape.columns[index]?.type),
    );
    if (shape.id === null) {
      yield withoutKey(values);
      continue;
    }
    const inserted_at = fields[locations.inserted_at];
    const id = fields[locations.id];
    if (typeof inserted_at !== 'string' || typeof id !== 'string')
      throw new FileUnreadable(`record ${number} has no _inserted_at or no ${shape.id}`);
    yield { inserted_at, id, values };
  }
}

async function* records(chunks: AsyncIterable<Buffer>): AsyncGenerator<Fields> {
  const parser = parse({
    record_delimiter: '\n',
    cast: (field, { quoting }) => (field === '' && !quoting ? null : field),
  });
  try {
    yield* pipeline(chunks, parser, () => undefined) as AsyncIterable<Fields>;
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    // Its message may hold values.
    throw new FileUnreadable(`its records cannot be told apart (${error.code})`);
  }
}

function valueOf(field: string | null | undefined, type: string | undefined): ValueDigest | undefined {
  if (field === null || field === undefined) return field;
  return type === 'json' ? digestBytes(withoutLineBreaks(Buffer.from(field))) : digestText(field);
}
