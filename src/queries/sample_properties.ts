import type { ConvertedType } from '@exportd/dialect/schema';
import type { Property, PropertyScope } from '@exportd/dialect/types';
import type { Pool } from '../journal/database.ts';
import { type DialectReader, openDialectReader } from './dialect_reader.ts';
import { findProperties, isPropertyName, storeInferredTypes } from './property_definitions.ts';
import type { QueryContext } from './query_kind.ts';
import type { InferredType } from './inferred_types.ts';

/** Properties that hold texts, even if the values of a sample look like something else. */
const alwaysText = /^(utm_|\$feature\/|\$feature_flag_response$|\$survey_response)/i;

/** The newest rows that are sampled, and those that are searched for properties which none of these has. */
const sampledRows = 20_000;
const searchedRows = 1_000_000;
/** Values that a search reads, of all properties together. */
const searchedValues = 4_000_000;

/** The control database failed while the source was read. `cause` is its error. */
export class ControlDatabaseFailed extends Error {
  override readonly name = 'ControlDatabaseFailed';

  constructor(cause: unknown) {
    super('The control database failed while the source was read.', { cause });
  }
}

/** What fails while the source is read is taken for an error of the source. @throws ControlDatabaseFailed */
const ofControlDatabase = <Result>(work: Promise<Result>): Promise<Result> =>
  work.catch((error: unknown) => {
    throw new ControlDatabaseFailed(error);
  });

/**
 * Finds the types of undeclared properties of a project: those that were inferred before, which never change, else the types of
 * sampled values, which are stored. Properties without a type are left out.
 * @throws ControlDatabaseFailed, and the errors of the warehouse
 */
export async function inferTypes(
  pool: Pool,
  context: QueryContext,
  properties: readonly Property[],
): Promise<readonly InferredType[]> {
  const { team_id } = context.project;
  const named = properties.filter(({ name }) => isPropertyName(name));
  const known = await ofControlDatabase(findProperties(pool, team_id, named));
  const unknown = named.filter(
    ({ scope, name }) =>
      !alwaysText.test(name) && !known.some((one) => one.scope === scope && one.name === name),
  );
  const reader = unknown.length === 0 ? null : await openDialectReader(context);
  const inferred: InferredType[] = [];
  for (const [scope, of] of Map.groupBy(unknown, (property) => property.scope))
    if (reader !== null) inferred.push(...(await sample(reader, scope, new Set(of.map(({ name }) => name)))));
  if (inferred.length === 0) return known;
  await ofControlDatabase(storeInferredTypes(pool, team_id, inferred));
  // Another request may have stored them before.
  return ofControlDatabase(findProperties(pool, team_id, named));
}

/** Where the values of properties are sampled: in the next rows only those that none of the rows before had. */
function rowsOf(scope: PropertyScope, properties: number): readonly string[] {
  const newestEvents = (column: string, rows: number): string =>
    `select ${column} as bag from events order by inserted_at desc limit ${rows}`;
  switch (scope) {
    case 'event':
      return [
        newestEvents('properties', sampledRows),
        newestEvents('properties', Math.min(searchedRows, Math.floor(searchedValues / properties))),
      ];
    case 'person':
      return [
        `select properties as bag from persons limit ${sampledRows}`,
        newestEvents('person.properties', sampledRows),
      ];
    default:
      return [
        `select properties as bag from groups where index = ${scope.slice('group_'.length)} limit ${sampledRows}`,
      ];
  }
}

/** Counts of the values of a property: of a type, and those that convert to it. */
interface ValueCounts {
  readonly values: number;
  readonly numbers: number;
  readonly convertedNumbers: number;
  readonly booleans: number;
  readonly convertedBooleans: number;
  readonly times: number;
}

/** Null in JSON is no value. The casts are those of queries that read the property as the type. */
const counted = (rows: string): string =>
  `select name, count(), countIf(type in ('Int64', 'Double')), countIf(isNotNull(cast(value as Float64))),
     countIf(lower(value) in ('true', 'false')), countIf(isNotNull(cast(value as Bool))),
     countIf(type = 'String' and isNotNull(cast(value as DateTime)))
   from (select name, bag[name] as value, JSONType(bag, name) as type from (${rows}) array join {names} as name)
   where isNotNull(value) group by name`;

async function sample(
  reader: DialectReader,
  scope: PropertyScope,
  names: Set<string>,
): Promise<readonly InferredType[]> {
  const inferred: InferredType[] = [];
  for (const rows of rowsOf(scope, names.size)) {
    if (names.size === 0) break;
    const result = await reader.read(counted(rows), {
      placeholders: new Map([['names', { kind: 'value', value: [...names] }]]),
      rows: { defaultLimit: names.size, maxRows: names.size },
    });
    for (const [name, ...counts] of result.rows as readonly (readonly [string, ...number[]])[]) {
      names.delete(name);
      const [values = 0, numbers = 0, convertedNumbers = 0, booleans = 0, convertedBooleans = 0, times = 0] =
        counts;
      const found = typeOfValues({
        values,
        numbers,
        convertedNumbers,
        booleans,
        convertedBooleans,
        times,
      });
      if (found !== null) inferred.push({ scope, name, sampled_values: values, ...found });
    }
  }
  return inferred;
}

/** The type of most values, if at least nine of ten convert to it. */
export function typeOfValues({
  values,
  numbers,
  convertedNumbers,
  booleans,
  convertedBooleans,
  times,
}: ValueCounts): { readonly type: ConvertedType; readonly matching_values: number } | null {
  const candidates = [
    { type: 'numeric', of: numbers, matching_values: convertedNumbers },
    { type: 'boolean', of: booleans, matching_values: convertedBooleans },
    { type: 'datetime', of: times, matching_values: times },
  ] as const;
  const found = candidates.find(
    ({ of, matching_values }) => of * 2 > values && matching_values * 10 >= values * 9,
  );
  return found ? { type: found.type, matching_values: found.matching_values } : null;
}
