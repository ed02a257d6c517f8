import { organisationKey, personOrganisation } from './group_rows.ts';
import { json, jsonMembers, jsonNumber, jsonObject, jsonString } from './json_text.ts';
import { country, deviceDistinctId, knownDistinctId, personCount, personId, plan } from './person_rows.ts';
import type { Dice } from './random.ts';

/** More events than a session ever has: an event's number is its session's times this, plus its place in it. */
export const longestSession = 12;
const eventNumber = `session * ${String(longestSession)} + place`;

/** The person of a session: some come back much more often than others. */
export const sessionPerson = (dice: Dice, session: string): string =>
  `floor(${String(personCount)} * power(${dice.fraction(session, 'person')}::float8, 1.6))::bigint`;

/** The session's id, as `$session_id` and in the replay. */
export const sessionId = (dice: Dice, session: string): string => `(${dice.uuid(session, 'session')})::text`;

/** Whether the visitor is signed in, and by which of their browsers they are known if not. */
export const sessionDistinctId = (dice: Dice, session: string, person: string): string =>
  `case when ${dice.below(session, 'signed in', 3)} > 0 then ${knownDistinctId(person)}
     else ${deviceDistinctId(dice, person, '1')} end`;

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

/** Names of events: a session begins with a page, is left at its end, and has these between. */
const eventName = (dice: Dice): string => `case
    when place = 0 then '$pageview'
    when place = length - 1 then '$pageleave'
    else ${dice.oneOf(eventNumber, 'event', [
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

const drawn = (dice: Dice, purpose: string, sides: number): string =>
  jsonNumber(dice.below(eventNumber, purpose, sides));

const purchase = (dice: Dice): string =>
  jsonMembers({
    revenue: jsonNumber(`5 + ${dice.below(eventNumber, 'revenue', 49_500)} / 100.0`),
    currency: dice.oneOfJson(eventNumber, 'currency', ['USD', 'EUR', 'GBP']),
    items: `'[' || ${jsonObject({
      sku: jsonString(`'SKU-' || ${dice.below(eventNumber, 'sku', 500)}`),
      quantity: drawn(dice, 'quantity', 4),
    })} || ',' || ${json({ sku: 'SKU-7', quantity: 1, gift: true, note: null })} || ']'`,
  });

/** What only some events have. */
const specialMembers = (dice: Dice): string => `case event
    when 'purchase' then ',' || ${purchase(dice)}
    when 'search' then ',' || ${jsonMembers({
      query: dice.oneOfJson(eventNumber, 'search', searches),
      results: drawn(dice, 'results', 40),
    })}
    when 'feature_flag_called' then ',' || ${jsonMembers({
      $feature_flag: json('new-checkout'),
      $feature_flag_response: dice.oneOfJson(eventNumber, 'flag', [true, false, 'control']),
    })}
    when 'signed_up' then ',' || ${jsonMembers({
      $set: jsonObject({
        plan: jsonString('plan'),
        source: json({ form: 'hero', fields: ['email', 'name'] }),
      }),
    })}
    when '$autocapture' then ',' || ${jsonMembers({ $event_type: json('click'), $el_text: json('Start now') })}
    else '' end`;

/** What the sessions have that came by a campaign. */
const campaignMembers = (
  dice: Dice,
): string => `case when ${dice.below('session', 'campaign', 10)} < 3 then ',' ||
    ${jsonMembers({
      utm_source: dice.oneOfJson('session', 'utm source', ['google', 'newsletter', 'hacker-news', 'partner']),
      utm_medium: dice.oneOfJson('session', 'utm medium', ['cpc', 'email', 'referral']),
      utm_campaign: dice.oneOfJson('session', 'utm campaign', ['spring', 'launch', 'retarget']),
    })} else '' end`;

/** What the events have of those who belong to an organisation. */
const groupMembers = `case when organisation is null then '' else ',' ||
    ${jsonMembers({ $group_0: jsonString(organisationKey('organisation')) })} end`;

const properties = (dice: Dice): string =>
  `('{' || ${jsonMembers({
    $session_id: jsonString('session_id'),
    $lib: json('web'),
    $lib_version: dice.oneOfJson('session', 'library', ['1.20.0', '1.20.1', '1.21.0', '1.22.3']),
    $current_url: jsonString(`'https://example.com' || path`),
    $pathname: jsonString('path'),
    $host: json('example.com'),
    $referrer: dice.oneOfJson('session', 'referrer', ['$direct', 'https://www.google.com/', null]),
    $browser: dice.oneOfJson('session', 'browser', [
      'Chrome',
      'Chrome',
      'Chrome',
      'Safari',
      'Firefox',
      'Edge',
    ]),
    $browser_version: jsonNumber(`100 + ${dice.below('session', 'browser version', 40)}`),
    $os: dice.oneOfJson('session', 'os', ['Windows', 'Windows', 'Mac OS X', 'iOS', 'Android', 'Linux']),
    $device_type: dice.oneOfJson('session', 'device type', ['Desktop', 'Desktop', 'Mobile', 'Tablet']),
    $screen_width: dice.oneOfJson('session', 'screen', [1920, 1440, 390]),
    $geoip_country_code: jsonString('country'),
    $active_feature_flags: json(['new-checkout', 'dark-mode']),
    plan: jsonString('plan'),
    load_ms: drawn(dice, 'load', 3_000),
  })} || ${groupMembers} || ${campaignMembers(dice)} || ${specialMembers(dice)} || '}')::jsonb`;

const personProperties = jsonObject({
  plan: jsonString('plan'),
  country: jsonString('country'),
  email: jsonString(`'user-' || person || '@example.com'`),
});

/**
 * A statement that inserts the events of a relation
 * `(session bigint, place int, length int, at timestamptz, inserted_at timestamptz)`: the place of an event in its
 * session counts from 0, and a session's events are a function of its number alone.
 */
export function insertEvents(dice: Dice, teamId: number, occurrences: string): string {
  return `insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, person_properties,
      elements_chain, timestamp, created_at, inserted_at)
    select ${String(teamId)}, uuid, event, distinct_id, person_id, ${properties(dice)},
      (${personProperties})::jsonb,
      case event when '$autocapture' then '${elements}' else '' end, at, inserted_at, inserted_at
    from (
      select *, ${dice.uuid(eventNumber, 'event id')} as uuid, ${eventName(dice)} as event,
        ${dice.oneOf(eventNumber, 'path', paths)} as path, ${plan(dice, 'person')} as plan,
        ${country(dice, 'person')} as country, ${personOrganisation(dice, 'person')} as organisation,
        ${personId(dice, 'person')} as person_id,
        ${sessionDistinctId(dice, 'session', 'person')} as distinct_id, ${sessionId(dice, 'session')} as session_id
      from (select *, ${sessionPerson(dice, 'session')} as person from (${occurrences}) as occurrences offset 0) as known
      -- "offset 0" keeps the planner from writing each expression out wherever it is used.
      offset 0
    ) as described`;
}
