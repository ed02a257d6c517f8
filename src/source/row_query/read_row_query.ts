import { DialectError } from '../../dialect/dialect_error.ts';
import { QueryText } from '../../dialect/query_text.ts';
import type { Model } from '../../domain/batch_export.ts';
import { compileRowQuery } from './compile_row_query.ts';
import type { RowPlace } from './model_row.ts';
import type { RowQuery } from './row_query.ts';
import { createSettingsSql } from './settings_sql.ts';

/** Types do not depend on where the columns are. */
const anyPlace: RowPlace = { sql: (name) => name, jsonType: () => 'jsonb' };
const anyRelation = { relation: 'any', columns: new Map<string, string>() };

/**
 * Checks a query that an export's owner wrote, and finds out the columns that it chooses. The source is not asked.
 * @throws DialectError
 */
export function readRowQuery(
  model: Model,
  given: Pick<RowQuery, 'dialect_query' | 'timezone' | 'week_start_day'>,
): RowQuery {
  const { fields, condition, printed } = compileRowQuery(model, given, 0, {
    selected: anyPlace,
    filtered: anyPlace,
    events: anyRelation,
    persons: anyRelation,
  });
  const { text, settings } = createSettingsSql();
  for (const piece of [...fields.map((field) => field.sql), ...(condition === null ? [] : [condition])])
    text(piece);
  if (Object.values(settings).some((value) => value.includes('\0')))
    throw new DialectError(new QueryText(given.dialect_query), 'A text cannot hold the character U+0000.', {
      start: 0,
      end: given.dialect_query.length,
    });
  const { dialect_query, timezone, week_start_day } = given;
  return {
    dialect_query,
    timezone,
    week_start_day,
    fields: fields.map(({ name, type, expression }) => ({ name, type, expression })),
    printed,
  };
}
