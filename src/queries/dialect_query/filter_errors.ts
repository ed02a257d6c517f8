import type { DialectReader } from '../dialect_reader.ts';
import { fallibleFilters } from '../filters.ts';
import { QueryError } from '../query_errors.ts';
import { placeholdersOf, type PlaceholderContext } from './placeholders.ts';
import type { DialectQuery } from './schema.ts';

/**
 * Runs a dialect query. If its text is rejected only because of `{filters}`, the error names the first invalid filter.
 * @param attr path of the query
 * @throws QueryError
 */
export async function withFilterPath<Result>(
  run: () => Result | Promise<Result>,
  query: DialectQuery,
  {
    reader,
    attr,
    ...context
  }: PlaceholderContext & { readonly reader: DialectReader; readonly attr: string },
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    const { filters } = query;
    const isOfText =
      error instanceof QueryError && error.code === 'dialect_error' && error.attr === `${attr}__query`;
    if (!isOfText || !filters) throw error;
    const compileWith = (changed: DialectQuery['filters'], path: string): void => {
      const placeholders = placeholdersOf({ ...query, filters: { ...filters, ...changed } }, context, attr);
      reader.compile(query.query, { placeholders, attr: path });
    };
    compileWith({ properties: [], filterTestAccounts: false }, error.attr);
    for (const item of fallibleFilters(filters.properties, `${attr}__filters__properties`))
      compileWith({ properties: [item.filter], filterTestAccounts: false }, item.attr);
    compileWith({ properties: [] }, `${attr}__filters__filterTestAccounts`);
    throw error;
  }
}
