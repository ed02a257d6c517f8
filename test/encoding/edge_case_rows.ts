import type { Pool } from '../../src/journal/database.ts';

/** Values that are difficult for exporters. */

export const interval = { start: '2026-11-01T10:00:00Z', end: '2026-11-01T11:00:00Z' };

const nested = `${'{"a": ['.repeat(1_000)}1${']}'.repeat(1_000)}`;
const controls = Array.from({ length: 127 }, (_, code) => String.fromCharCode(code + 1)).join('');

/** JSON for columns of both types. */
const json = [
  '{}',
  'null',
  '"text, with \\"quotes\\""',
  '  12345678901234567890.10 ',
  '{"id": 12345678901234567890, "price": 1.10, "tiny": 1e-300, "zero": -0}',
  '{"__proto__": {"polluted": true}, "constructor": 1}',
  '{"separator": "a\u2028b\u2029c", "emoji": "😀", "escaped": "\\n\\t\\"\\\\\\u0001"}',
  nested,
  JSON.stringify({ large: 'z"\n'.repeat(400_000) }),
];

/** JSON that only the type `json` preserves. */
const jsonAsWritten = [
  '{"nul": "\\u0000", "nul again": "\\u0000"}',
  '{"zero": -0, "huge": 1e400, "doubled": 1, "doubled": 2}',
  '\r\n{\r\n\t"laid": "out",\n "in": [\n1,\r2] }\n',
  ' [ ] ',
];

const texts = [
  '',
  ' leading',
  'trailing\t',
  'a,b;"c"',
  '"',
  '""',
  'line\nbreaks\r\nof\rall kinds\n',
  controls,
  'NULL',
  '\\N',
  '\\.',
  "'",
  'null',
  '😀 \u2028 é \ufeff',
];

const times = [
  '0001-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999999Z',
  '1582-10-10T12:00:00.000001+05:30',
  '1999-12-31T23:59:59.999999Z',
];

/** Creates views whose JSON columns have the type `json` and whose other columns are nullable. */
export async function createJsonViews(pool: Pool): Promise<void> {
  await pool.query(`
    create table public.json_event_rows (like public.events);
    alter table public.json_event_rows alter properties type json, alter person_properties type json,
      alter elements_chain drop not null, alter created_at drop not null, alter properties drop not null;
    create view public.json_events as select * from public.json_event_rows;
    create table public.json_person_rows (like public.persons);
    alter table public.json_person_rows alter properties type json;
    create view public.json_persons as select * from public.json_person_rows`);
}

/** Inserts a row for each value, one second apart. */
export async function insertEdgeCaseEvents(
  pool: Pool,
  teamId: number,
  relation: 'events' | 'json_events',
): Promise<void> {
  const ofRelation = relation === 'events' ? json : [...json, ...jsonAsWritten];
  const count = Math.max(ofRelation.length, texts.length, times.length);
  for (let index = 0; index < count; index += 1)
    await pool.query(
      `insert into public.${relation}
         (team_id, uuid, event, distinct_id, elements_chain, properties, person_properties, person_id, timestamp, created_at, inserted_at)
       values ($1, gen_random_uuid(), $2, $3, $4, $5, $6, $7, '2026-11-01 10:00Z', $8, timestamptz '2026-11-01 10:00Z' + $9 * interval '1.000001 second')`,
      [
        teamId,
        texts[index % texts.length],
        texts[(index + 1) % texts.length],
        relation === 'json_events' && index % 3 === 0 ? null : texts[(index + 2) % texts.length],
        ofRelation[index] ?? '{}',
        index % 4 === 0 ? null : '{"plan": "free"}',
        index % 2 === 0 ? null : '01234567-89ab-cdef-0123-456789abcdef',
        relation === 'json_events' && index % 5 === 0 ? null : times[index % times.length],
        index,
      ],
    );
}

/** Inserts a person for each value, with two distinct ids. */
export async function insertEdgeCasePersons(
  pool: Pool,
  teamId: number,
  relation: 'persons' | 'json_persons',
): Promise<void> {
  const ofRelation = relation === 'persons' ? json : [...json, ...jsonAsWritten];
  for (const [index, properties] of ofRelation.entries()) {
    const { rows } = await pool.query<{ id: string }>(
      `insert into public.${relation} (team_id, id, properties, version, is_deleted, created_at, updated_at)
       values ($1, gen_random_uuid(), $2, $3, $4, $5, timestamptz '2026-11-01 10:00Z' + $6 * interval '1.000001 second') returning id`,
      [
        teamId,
        properties,
        index === 0 ? '9223372036854775807' : '-9007199254740993',
        index % 5 === 4,
        times[index % times.length],
        index,
      ],
    );
    for (const distinctId of [texts[index % texts.length], `of ${index}`])
      await pool.query(
        `insert into public.person_distinct_ids (team_id, distinct_id, person_id, version, is_deleted, updated_at)
         values ($1, $2, $3, $4, false, timestamptz '2026-11-01 10:00Z')`,
        [teamId, `${index}${distinctId}`, rows[0]?.id, index - 3],
      );
  }
}
