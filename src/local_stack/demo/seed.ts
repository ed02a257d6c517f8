import pg from 'pg';
import type { Report } from '../report.ts';
import { insertEvents, longestSession, sessionDistinctId, sessionId, sessionPerson } from './event_rows.ts';
import { insertGroups } from './group_rows.ts';
import { insertPersons } from './person_rows.ts';
import { createDice, type Dice } from './random.ts';

/** Sessions of the demo are known by this; the source's barrier must not take them for exportd's own. */
export const demoApplicationName = 'exportd-demo';

/** What the demo data follow from: the same seed and anchor give the same rows. */
export interface Seed {
  readonly teamId: number;
  readonly seed: number;
  /** The newest row's time. */
  readonly anchor: Date;
  /** How many whole hours before the anchor's hour the data begin; 48 when it is not said. */
  readonly hours?: number;
}

const hoursOf = ({ hours = 48 }: Seed): number => hours;
/** Most sessions that an hour may have; a session's number is its hour's times this, plus its place in it. */
const sessionsPerHour = 10_000;
const replayCount = 2_000;

const literal = (time: Date): string => `timestamptz '${time.toISOString()}'`;

function firstHour(seed: Seed): Date {
  const hour = new Date(seed.anchor);
  hour.setUTCMinutes(0, 0, 0);
  hour.setUTCHours(hour.getUTCHours() - hoursOf(seed));
  return hour;
}

/** Sessions of some hours: few at night, about twice as many in the afternoon. */
function sessions(dice: Dice, seed: Seed, hourCondition: string): string {
  const begin = literal(firstHour(seed));
  const perHour = `540 + 320 * (1 + sin((extract(hour from hour_begin at time zone 'UTC') - 9) * pi() / 12)) / 2`;
  return `select session, 2 + ${dice.below('session', 'length', longestSession - 2)} as length,
      hour_begin + interval '1 hour' * ${dice.fraction('session', 'begin')}::float8 as begin_at
    from (
      select hour::bigint * ${String(sessionsPerHour)} + number as session, hour_begin
      from generate_series(0, ${String(hoursOf(seed))}) as hour,
        lateral (select ${begin} + interval '1 hour' * hour as hour_begin) as begins,
        lateral generate_series(0, (${perHour})::int - 1) as number
      where ${hourCondition}
    ) as numbered`;
}

/** The events of some hours, each with its time and the time it arrived: one in fifty comes hours late. */
function occurrences(dice: Dice, seed: Seed, hourCondition: string): string {
  const number = `session * ${String(longestSession)} + place`;
  const anchor = literal(seed.anchor);
  const late = `at + interval '1 hour' * (1 + 5 * ${dice.fraction(number, 'lateness')})::float8`;
  return `select session, place, length, at,
      case when ${dice.below(number, 'late', 1_000)} < 22 and ${late} <= ${anchor} then ${late}
        else at + interval '1 second' * (0.2 + 4 * ${dice.fraction(number, 'delay')})::float8 end as inserted_at
    from (
      select session, place, length, begin_at + interval '1 second' *
          (place * (5 + ${dice.below('session', 'pace', 35)}) + 4 * ${dice.fraction(number, 'pause')})::float8 as at
      from (${sessions(dice, seed, hourCondition)}) as sessions, lateral generate_series(0, length - 1) as place
    ) as timed
    where at <= ${anchor} - interval '5 seconds'`;
}

function insertReplays(dice: Dice, seed: Seed): string {
  const draw = (purpose: string, sides: number) => dice.below('session', purpose, sides);
  const person = sessionPerson(dice, 'session');
  return `insert into public.session_replay_events (team_id, session_id, distinct_id, min_first_timestamp,
      max_last_timestamp, first_url, click_count, keypress_count, mouse_activity_count, active_milliseconds,
      console_log_count, console_warn_count, console_error_count, size)
    select ${String(seed.teamId)}, ${sessionId(dice, 'session')}, ${sessionDistinctId(dice, 'session', person)}, begin_at,
      begin_at + interval '1 second' * length * (5 + ${draw('pace', 35)}), 'https://example.com/',
      ${draw('clicks', 60)}, ${draw('keys', 200)}, 50 + ${draw('moves', 900)}, length * (1000 + ${draw('active', 9000)}),
      ${draw('logs', 30)}, ${draw('warnings', 8)}, ${draw('errors', 3)}, 20000 + ${draw('size', 900_000)}
    from (${sessions(dice, seed, `hour < ${String(hoursOf(seed))}`)}) as sessions
    order by ${dice.roll('session', 'recorded')} limit ${String(replayCount)}`;
}

/** Runs statements one after the other in one transaction. */
async function execute(databaseUrl: string, statements: readonly string[]): Promise<void> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: demoApplicationName,
    options: '-c timezone=UTC -c jit=off',
  });
  await client.connect();
  try {
    await client.query('begin');
    for (const statement of statements) await client.query(statement);
    await client.query('commit');
  } finally {
    await client.end();
  }
}

/**
 * Fills the source's relations with the demo project's rows. What an interrupted earlier attempt left is removed.
 * Two sessions share the events, hour by hour, since one cannot use two cores for an insert.
 */
export async function seedDemo(databaseUrl: string, seed: Seed, report: Report): Promise<void> {
  const dice = createDice(seed.seed);
  const team = String(seed.teamId);
  const relations = ['events', 'persons', 'person_distinct_ids', 'session_replay_events', 'groups'];
  await execute(
    databaseUrl,
    relations.map((relation) => `delete from public.${relation} where team_id = ${team}`),
  );
  const insert = (hourCondition: string) =>
    insertEvents(dice, seed.teamId, occurrences(dice, seed, hourCondition));
  const [from, to] = [literal(firstHour(seed)), literal(seed.anchor)];
  await Promise.all([
    execute(databaseUrl, [insert('hour % 2 = 0'), insertReplays(dice, seed)]),
    execute(databaseUrl, [
      ...insertPersons(dice, seed.teamId, from, to),
      insertGroups(dice, seed.teamId, from, to),
      insert('hour % 2 = 1'),
    ]),
  ]);
  await execute(databaseUrl, [`analyze ${relations.map((relation) => `public.${relation}`).join(', ')}`]);
  report(
    `Demo data: ${(await countEvents(databaseUrl, seed.teamId)).toLocaleString('en')} events of ${hoursOf(seed)} hours`,
  );
}

async function countEvents(databaseUrl: string, teamId: number): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: demoApplicationName });
  await client.connect();
  try {
    const { rows } = await client.query<{ count: string }>(
      'select count(*) from public.events where team_id = $1',
      [teamId],
    );
    return Number(rows[0]?.count ?? 0);
  } finally {
    await client.end();
  }
}
