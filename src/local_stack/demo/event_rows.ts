import { organisationKey, personOrganisation } from './group_rows.ts';
import { json, jsonFields, jsonNumber, jsonObject, jsonString } from './json_sql.ts';
import { country, deviceDistinctId, knownDistinctId, personCount, personId, plan } from './person_rows.ts';
import type { SeededRandom } from './seeded_random.ts';

/** No session has more events. The number of an event is the number of its session times this, plus its position. */
export const maxSessionEvents = 12;
const eventNumber = `session * ${String(maxSessionEvents)} + position`;

/** The number of the person of a session. Some return much more often than others. */
export const sessionPerson = (random: SeededRandom, session: string): string =>
  `floor(${String(personCount)} * power(${random.fraction(session, 'person')}::float8, 1.6))::bigint`;

/** The id of a session, as in `$session_id` and in its replay. */
export const sessionId = (random: SeededRandom, session: string): string =>
  `(${random.uuid(session, 'session')})::text`;

/** The distinct id of a session: the person's if they are signed in, otherwise that of a browser. */
export const sessionDistinctId = (random: SeededRandom, session: string, person: string): string =>
  `case when ${random.integerBelow(session, 'signed in', 3)} > 0 then ${knownDistinctId(person)}
     else ${deviceDistinctId(random, person, '1')} end`;

const paths = [
  '/',
  '/pricing',
  '/docs',
  '/docs/getting-started',
  '/blog/hello-world',
  '/app',
  '/app/reports',
  '/checkout',
];
const searches = ['export to s3', 'naïve "quotes"', 'tab\tand\nline', 'größe ☕', "it's; drop table", ''];
const elements =
  'button.btn.btn-primary:attr__class="btn btn-primary"nth-child="2"nth-of-type="1"text="Start now";div.hero:nth-child="1"nth-of-type="1";body:nth-child="2"nth-of-type="1"';

/** The name of an event: the first of a session is $pageview, the last $pageleave. */
const eventName = (random: SeededRandom): string => `case
    when position = 0 then '$pageview'
    when position = length - 1 then '$pageleave'
    else ${random.oneOf(eventNumber, 'event', [
      ...[
        '$pageview',
        '$pageview',
        '$pageview',
        '$autocapture',
        '$autocapture',
        '$autocapture',
        '$autocapture',
      ],
      ...['search', 'feature_flag_called', 'report_viewed', 'signed_up', 'purchase'],
    ])} end`;

const randomNumber = (random: SeededRandom, purpose: string, limit: number): string =>
  jsonNumber(random.integerBelow(eventNumber, purpose, limit));

const purchase = (random: SeededRandom): string =>
  jsonFields({
    revenue: jsonNumber(`5 + ${random.integerBelow(eventNumber, 'revenue', 49_500)} / 100.0`),
    currency: random.oneOfJson(eventNumber, 'currency', ['USD', 'EUR', 'GBP']),
    items: `'[' || ${jsonObject({
      sku: jsonString(`'SKU-' || ${random.integerBelow(eventNumber, 'sku', 500)}`),
      quantity: randomNumber(random, 'quantity', 4),
    })} || ',' || ${json({ sku: 'SKU-7', quantity: 1, gift: true, note: null })} || ']'`,
  });

/** Properties that depend on the name of the event. */
const eventSpecificFields = (random: SeededRandom): string => `case event
    when 'purchase' then ',' || ${purchase(random)}
    when 'search' then ',' || ${jsonFields({
      query: random.oneOfJson(eventNumber, 'search', searches),
      results: randomNumber(random, 'results', 40),
    })}
    when 'feature_flag_called' then ',' || ${jsonFields({
      $feature_flag: json('new-checkout'),
      $feature_flag_response: random.oneOfJson(eventNumber, 'flag', [true, false, 'control']),
    })}
    when 'signed_up' then ',' || ${jsonFields({
      $set: jsonObject({
        plan: jsonString('plan'),
        source: json({ form: 'hero', fields: ['email', 'name'] }),
      }),
    })}
    when '$autocapture' then ',' || ${jsonFields({ $event_type: json('click'), $el_text: json('Start now') })}
    else '' end`;

/** Properties of sessions that came from a campaign. */
const campaignFields = (
  random: SeededRandom,
): string => `case when ${random.integerBelow('session', 'campaign', 10)} < 3 then ',' ||
    ${jsonFields({
      utm_source: random.oneOfJson('session', 'utm source', [
        'google',
        'newsletter',
        'hacker-news',
        'partner',
      ]),
      utm_medium: random.oneOfJson('session', 'utm medium', ['cpc', 'email', 'referral']),
      utm_campaign: random.oneOfJson('session', 'utm campaign', ['spring', 'launch', 'retarget']),
    })} else '' end`;

/** Properties of persons who belong to an organisation. */
const groupFields = `case when organisation is null then '' else ',' ||
    ${jsonFields({ $group_0: jsonString(organisationKey('organisation')) })} end`;

const properties = (random: SeededRandom): string =>
  `('{' || ${jsonFields({
    $session_id: jsonString('session_id'),
    $lib: json('web'),
    $lib_version: random.oneOfJson('session', 'library', ['1.20.0', '1.20.1', '1.21.0', '1.22.3']),
    $current_url: jsonString(`'https://example.com' || path`),
    $pathname: jsonString('path'),
    $host: json('example.com'),
    $referrer: random.oneOfJson('session', 'referrer', ['$direct', 'https://www.google.com/', null]),
    $browser: random.oneOfJson('session', 'browser', [
      'Chrome',
      'Chrome',
      'Chrome',
      'Safari',
      'Firefox',
      'Edge',
    ]),
    $browser_version: jsonNumber(`100 + ${random.integerBelow('session', 'browser version', 40)}`),
    $os: random.oneOfJson('session', 'os', ['Windows', 'Windows', 'Mac OS X', 'iOS', 'Android', 'Linux']),
    $device_type: random.oneOfJson('session', 'device type', ['Desktop', 'Desktop', 'Mobile', 'Tablet']),
    $screen_width: random.oneOfJson('session', 'screen', [1920, 1440, 390]),
    $geoip_country_code: jsonString('country'),
    $active_feature_flags: json(['new-checkout', 'dark-mode']),
    plan: jsonString('plan'),
    load_ms: randomNumber(random, 'load', 3_000),
  })} || ${groupFields} || ${campaignFields(random)} || ${eventSpecificFields(random)} || '}')::jsonb`;

const personProperties = jsonObject({
  plan: jsonString('plan'),
  country: jsonString('country'),
  email: jsonString(`'user-' || person || '@example.com'`),
});

/**
 * A statement that inserts the events of a relation
 * `(session bigint, position int, length int, at timestamptz, inserted_at timestamptz)`. Positions in a session start
 * at 0. The events of a session depend only on its number.
 */
export function insertEvents(random: SeededRandom, teamId: number, occurrences: string): string {
  return `insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, person_properties,
      elements_chain, timestamp, created_at, inserted_at)
    select ${String(teamId)}, uuid, event, distinct_id, person_id, ${properties(random)},
      (${personProperties})::jsonb,
      case event when '$autocapture' then '${elements}' else '' end, at, inserted_at, inserted_at
    from (
      select *, ${random.uuid(eventNumber, 'event id')} as uuid, ${eventName(random)} as event,
        ${random.oneOf(eventNumber, 'path', paths)} as path, ${plan(random, 'person')} as plan,
        ${country(random, 'person')} as country, ${personOrganisation(random, 'person')} as organisation,
        ${personId(random, 'person')} as person_id,
        ${sessionDistinctId(random, 'session', 'person')} as distinct_id, ${sessionId(random, 'session')} as session_id
      from (select *, ${sessionPerson(random, 'session')} as person from (${occurrences}) as occurrences offset 0) as known
      -- "offset 0" stops the planner from inlining each expression wherever it is used.
      offset 0
    ) as described`;
}
