import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Report } from '../report.ts';
import {
  insertEvents,
  insertGroups,
  insertPersons,
  maxSessionEvents,
  sessionDistinctId,
  sessionId,
  sessionPerson,
} from './event_rows.ts';
import { createSeededRandom, type SeededRandom } from './seeded_random.ts';

/** Identifies connections of the demo, because the barrier of the source ignores only exportd's own. */
const demoApplicationName = 'exportd-demo';

/** Determines the demo data: the same seed and anchor give the same rows. */
interface Seed {
  readonly teamId: number;
  readonly seed: number;
  /** Time of the newest row. */
  readonly anchor: Date;
  /** How many whole hours before the hour of the anchor the data starts; 48 by default. */
  readonly hours?: number;
}

const hoursOf = ({ hours = 48 }: Seed): number => hours;
/** No hour has more sessions. The number of a session is the number of its hour times this, plus its position. */
const sessionsPerHour = 10_000;
const replayCount = 2_000;

const literal = (time: Date): string => `timestamptz '${time.toISOString()}'`;

function firstHour(seed: Seed): Date {
  const hour = new Date(seed.anchor);
  hour.setUTCMinutes(0, 0, 0);
  hour.setUTCHours(hour.getUTCHours() - hoursOf(seed));
  return hour;
}

/** SQL for the sessions of some hours: few at night, about twice as many in the afternoon. */
function sessions(random: SeededRandom, seed: Seed, hourCondition: string): string {
  const firstHourStart = literal(firstHour(seed));
  const perHour = `540 + 320 * (1 + sin((extract(hour from hour_start at time zone 'UTC') - 9) * pi() / 12)) / 2`;
  return `select session, 2 + ${random.integerBelow('session', 'length', maxSessionEvents - 2)} as length,
      hour_start + interval '1 hour' * ${random.fraction('session', 'begin')}::float8 as started_at
    from (
      select hour::bigint * ${String(sessionsPerHour)} + number as session, hour_start
      from generate_series(0, ${String(hoursOf(seed))}) as hour,
        lateral (select ${firstHourStart} + interval '1 hour' * hour as hour_start) as starts,
        lateral generate_series(0, (${perHour})::int - 1) as number
      where ${hourCondition}
    ) as numbered`;
}

/** SQL for the events of some hours, with time and arrival time. One in fifty arrives hours late. */
function occurrences(random: SeededRandom, seed: Seed, hourCondition: string): string {
  const number = `session * ${String(maxSessionEvents)} + position`;
  const anchor = literal(seed.anchor);
  const late = `at + interval '1 hour' * (1 + 5 * ${random.fraction(number, 'lateness')})::float8`;
  return `select session, position, length, at,
      case when ${random.integerBelow(number, 'late', 1_000)} < 22 and ${late} <= ${anchor} then ${late}
        else at + interval '1 second' * (0.2 + 4 * ${random.fraction(number, 'delay')})::float8 end as inserted_at
    from (
      select session, position, length, started_at + interval '1 second' *
          (position * (5 + ${random.integerBelow('session', 'pace', 35)}) + 4 * ${random.fraction(number, 'pause')})::float8 as at
      from (${sessions(random, seed, hourCondition)}) as sessions, lateral generate_series(0, length - 1) as position
    ) as timed
    where at <= ${anchor} - interval '5 seconds'`;
}

function insertReplays(random: SeededRandom, seed: Seed): string {
  const draw = (purpose: string, limit: number) => random.integerBelow('session', purpose, limit);
  const person = sessionPerson(random, 'session');
  return `insert into public.session_replay_events (team_id, session_id, distinct_id, min_first_timestamp,
      max_last_timestamp, first_url, click_count, keypress_count, mouse_activity_count, active_milliseconds,
      console_log_count, console_warn_count, console_error_count, size)
    select ${String(seed.teamId)}, ${sessionId(random, 'session')}, ${sessionDistinctId(random, 'session', person)}, started_at,
      started_at + interval '1 second' * length * (5 + ${draw('pace', 35)}), 'https://example.com/',
      ${draw('clicks', 60)}, ${draw('keys', 200)}, 50 + ${draw('moves', 900)}, length * (1000 + ${draw('active', 9000)}),
      ${draw('logs', 30)}, ${draw('warnings', 8)}, ${draw('errors', 3)}, 20000 + ${draw('size', 900_000)}
    from (${sessions(random, seed, `hour < ${String(hoursOf(seed))}`)}) as sessions
    order by ${random.integer('session', 'recorded')} limit ${String(replayCount)}`;
}

/** Runs statements in one transaction. */
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
 * Inserts the rows of the demo project. Deletes the rows of an earlier, interrupted attempt first.
 * Two connections insert alternate hours, because an insert uses only one core.
 */
export async function seedDemo(databaseUrl: string, seed: Seed, report: Report): Promise<void> {
  const random = createSeededRandom(seed.seed);
  const team = String(seed.teamId);
  const relations = [
    'events',
    'persons',
    'person_distinct_ids',
    'session_replay_events',
    'groups',
    'cohort_people',
  ];
  await execute(
    databaseUrl,
    relations.map((relation) => `delete from public.${relation} where team_id = ${team}`),
  );
  const insert = (hourCondition: string) =>
    insertEvents(random, seed.teamId, occurrences(random, seed, hourCondition));
  const [from, to] = [literal(firstHour(seed)), literal(seed.anchor)];
  await Promise.all([
    execute(databaseUrl, [insert('hour % 2 = 0'), insertReplays(random, seed)]),
    execute(databaseUrl, [
      ...insertPersons(random, seed.teamId, from, to),
      insertGroups(random, seed.teamId, from, to),
      insert('hour % 2 = 1'),
    ]),
  ]);
  await execute(databaseUrl, [`analyze ${relations.map((relation) => `public.${relation}`).join(', ')}`]);
  report(
    `Demo data: ${(await countEvents(databaseUrl, seed.teamId)).toLocaleString('en')} events in ${hoursOf(seed)} hours`,
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

/** Inserts new events until it is stopped. */
export interface EventGenerator {
  stop(): Promise<void>;
}

const eventsPerSecond = 5;
/** Length of a session, which has one event per second. */
const sessionSeconds = 12;

/** SQL for the events of a second: one of each visitor, inserted as it happens. */
const generatedOccurrences = (second: number): string => `
  select ${String(Math.floor(second / sessionSeconds) * eventsPerSecond)}::bigint + visitor as session,
    ${String(second % sessionSeconds)} as position, ${String(sessionSeconds)} as length,
    clock_timestamp() - interval '50 milliseconds' * visitor as at, clock_timestamp() as inserted_at
  from generate_series(0, ${String(eventsPerSecond - 1)}) as visitor`;

/** Inserts a few events every second. Retries while the database is unavailable. */
export function startEventGenerator(
  databaseUrl: string,
  teamId: number,
  seed: number,
  report: Report,
): EventGenerator {
  const random = createSeededRandom(seed);
  const stopping = new AbortController();
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: 1,
    application_name: demoApplicationName,
    connectionTimeoutMillis: 2_000,
  });
  pool.on('error', () => undefined);
  const run = async () => {
    // No second is used twice: its events would have the same ids.
    let last = 0;
    let isInserting = true;
    while (!stopping.signal.aborted) {
      const second = Math.max(Math.floor(Date.now() / 1_000), last + 1);
      last = second;
      try {
        await pool.query(insertEvents(random, teamId, generatedOccurrences(second)));
        if (!isInserting) report('Inserting demo events again');
        isInserting = true;
      } catch (error) {
        if (isInserting) report(`Inserting demo events failed, retrying: ${(error as Error).message}`);
        isInserting = false;
      }
      await delay(1_000, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
    await pool.end();
  };
  const done = run();
  return {
    stop: () => {
      stopping.abort();
      return done;
    },
  };
}
