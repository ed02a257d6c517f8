import { json, jsonMembers, jsonNumber, jsonObject, jsonString } from '../local_stack/demo/json_text.ts';
import { createDice } from '../local_stack/demo/random.ts';

/** What the rows follow from: the same seed, count and interval give the same rows on any machine. */
const dice = createDice(4_711);

/** Neighbouring rows that share sessions, as visitors who are there at the same time do. */
const rowsTogether = 384;
const sessionsTogether = 48;
const persons = 200_000;

const browsers = ['Chrome', 'Chrome', 'Chrome', 'Safari', 'Firefox', 'Edge'];
const systems = ['Windows', 'Windows', 'Mac OS X', 'iOS', 'Android', 'Linux'];
const countries = ['US', 'DE', 'GB', 'FR', 'IN', 'BR', 'JP', 'AU', 'CA', 'NL', 'ES', 'PL'];
const paths = ['/', '/pricing', '/docs', '/docs/getting-started', '/app', '/app/reports', '/checkout'];
const names = ['$pageview', '$pageview', '$autocapture', '$autocapture', '$pageleave', 'report_viewed'];
const elements = [
  '',
  '',
  '',
  'button.btn:text="Start now";div.hero;body',
  'a.link:href="/pricing"text="Prices";nav;body',
];

const properties = jsonObject({
  $session_id: jsonString('session_id'),
  $lib: json('web'),
  $lib_version: dice.oneOfJson('session', 'library', ['1.20.0', '1.20.1', '1.21.0', '1.22.3']),
  $current_url: jsonString(`'https://example.com' || path`),
  $browser: dice.oneOfJson('session', 'browser', browsers),
  $browser_version: jsonNumber(`100 + ${dice.below('session', 'browser version', 40)}`),
  $os: dice.oneOfJson('session', 'os', systems),
  $screen_width: dice.oneOfJson('session', 'screen', [1920, 1440, 390]),
  $device_type: dice.oneOfJson('session', 'device type', ['Desktop', 'Desktop', 'Mobile']),
  load_ms: jsonNumber(dice.below('number', 'load', 3_000)),
});

const personProperties = `'{' || ${jsonMembers({
  plan: dice.oneOfJson('person', 'plan', ['free', 'free', 'team', 'enterprise']),
  country: dice.oneOfJson('person', 'country', countries),
})} || '}'`;

/** Which of the rows a statement makes. */
export interface EventRows {
  readonly first: number;
  /** The first that is not made. */
  readonly end: number;
  /** How many there are in all. */
  readonly count: number;
  /** How many hours they are spread over; 1 when it is not given. */
  readonly hours?: number;
  /** How many projects take turns, the first one's number first; 1 when it is not given. */
  readonly projects?: number;
}

/**
 * A statement that inserts the rows `[first, end)` of `count` rows, about 445 bytes each as binary COPY, spread evenly
 * over the hours that begin at `start`, in the order in which they arrive.
 */
export function insertEventRows(teamId: number, start: Date, rows: EventRows): string {
  const { hours = 1, projects = 1 } = rows;
  const spacing = (3_600_000_000 * hours) / rows.count;
  const team = `${String(teamId)} + (number % ${String(projects)})::int`;
  const micros = `(number * ${String(spacing)} + ${String(Math.floor(spacing))} * ${dice.fraction('number', 'arrival')})::bigint`;
  const arrived = `timestamptz '${start.toISOString()}' + interval '1 microsecond' * ${micros}`;
  return `insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, person_properties,
      elements_chain, timestamp, created_at, inserted_at)
    select ${team}, ${dice.uuid('number', 'event id')}, ${dice.oneOf('number', 'event', names)},
      'user-' || person, ${dice.uuid('person', 'person id')}, (${properties})::jsonb, (${personProperties})::jsonb,
      ${dice.oneOf('number', 'elements', elements)},
      arrived - interval '1 millisecond' * (200 + ${dice.below('number', 'delay', 4_000)}),
      arrived - interval '1 microsecond' * ${dice.below('number', 'queue', 50_000)}, arrived
    from (
      select *, ${dice.oneOf('number', 'path', paths)} as path, ${dice.below('session', 'person', persons)} as person,
        (${dice.uuid('session', 'session id')})::text as session_id, ${arrived} as arrived
      from (
        select number, number / ${rowsTogether} * ${sessionsTogether}
          + ${dice.below('number', 'session', sessionsTogether)} as session
        from generate_series(${String(rows.first)}::bigint, ${String(rows.end - 1)}) as number
        -- "offset 0" keeps the planner from writing each expression out wherever it is used.
        offset 0
      ) as numbered
      offset 0
    ) as described`;
}
