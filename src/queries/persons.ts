import type { JsonValue, PlaceholderValue } from '@exportd/dialect/resolve/placeholders';
import type { DialectReader } from './dialect_reader.ts';

/** Properties that hold a person's display name, in order of preference. */
export const displayProperties = [
  'email',
  'Email',
  'name',
  'Name',
  'username',
  'Username',
  'UserName',
] as const;

/** A person's display name: a property, else a distinct id, else the person's id. */
export function displayName(
  properties: Readonly<Record<string, unknown>>,
  distinctIds: readonly string[],
  id: string,
): string {
  for (const name of displayProperties) {
    const value = properties[name];
    if (typeof value === 'string' && value.trim() !== '') return value;
    if (typeof value === 'number') return String(value);
  }
  return distinctIds[0] ?? id;
}

/** Maximum ids per statement. */
const idBatchSize = 2_000;

/**
 * Runs a query that returns at most one row for each of `{ids}`, in batches.
 * @param values of other placeholders
 * @throws QueryError
 */
export async function readByIds(
  reader: DialectReader,
  query: string,
  ids: readonly string[],
  values: Readonly<Record<string, JsonValue>> = {},
): Promise<readonly (readonly unknown[])[]> {
  const found: (readonly unknown[])[] = [];
  for (let at = 0; at < ids.length; at += idBatchSize) {
    const batch = ids.slice(at, at + idBatchSize);
    // Placeholders are filled in after parsing: parsing this many literals would be slow.
    const placeholders = new Map(
      Object.entries({ ...values, ids: batch }).map(([name, value]): [string, PlaceholderValue] => [
        name,
        { kind: 'value', value },
      ]),
    );
    const rows = { defaultLimit: batch.length, maxRows: batch.length };
    found.push(...(await reader.read(query, { placeholders, rows })).rows);
  }
  return found;
}

/** A person in results. */
interface PersonValue {
  readonly id: string;
  readonly properties: Readonly<Record<string, unknown>>;
  /** Null where the source does not say. */
  readonly is_identified: boolean | null;
  readonly created_at: string;
  readonly distinct_ids: readonly string[];
}

type PersonRow = readonly [
  id: string,
  properties: Record<string, unknown> | null,
  created_at: string,
  is_identified?: boolean | null,
];

const distinctIdsOfIds = `select person_id, arraySort(groupArray(distinct_id)) from person_distinct_ids
  where person_id in {ids} group by person_id`;

/** Finds persons by their ids. Deleted and unknown persons are missing. */
export async function findPersons(
  reader: DialectReader,
  ids: readonly string[],
): Promise<ReadonlyMap<string, PersonValue>> {
  const uniqueIds = [...new Set(ids)];
  // Without the column, the dialect would read the events that identified a person.
  const isStored = reader.schema.persons.columns.get('is_identified') === 'boolean';
  const persons = await readByIds(
    reader,
    `select id, properties, created_at${isStored ? ', is_identified' : ''} from persons where id in {ids}`,
    uniqueIds,
  );
  const distinctIds = await readByIds(reader, distinctIdsOfIds, uniqueIds);
  const ofPerson = new Map(distinctIds as readonly (readonly [string, readonly string[]])[]);
  return new Map(
    persons.map((row) => {
      const [id, properties, created_at, is_identified = null] = row as PersonRow;
      return [
        id,
        {
          id,
          properties: properties ?? {},
          is_identified,
          created_at,
          distinct_ids: ofPerson.get(id) ?? [],
        },
      ];
    }),
  );
}
