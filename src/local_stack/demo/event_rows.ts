import {
  json,
  jsonFields,
  jsonNumber,
  jsonObject,
  jsonString,
  type SeededRandom,
  sqlLiteral,
} from './seeded_random.ts';

/** Number of persons. */
const personCount = 20_000;

/** SQL for the UUID of the person with that number. */
const personId = (random: SeededRandom, person: string): string => random.uuid(person, 'person');

/** The distinct id of a person who is signed in. */
const knownDistinctId = (person: string): string => `'user-' || lpad((${person})::text, 6, '0')`;

/** The distinct id of a browser; a person has up to three. */
const deviceDistinctId = (random: SeededRandom, person: string, device: string): string =>
  `(${random.uuid(`(${person}) * 4 + (${device})`, 'device')})::text`;

const firstNames = [
  'Ada',
  'Björn',
  'Chloé',
  'Dmitri',
  'Elif',
  'Femi',
  'Grace',
  'Hana',
  'Iñigo',
  'Jun',
  'Kavya',
  'Łucja',
];
const lastNames = [
  'Abebe',
  "O'Neil",
  'Çelik',
  'Dąbrowski',
  'Eriksen',
  'Fujita',
  'García',
  'Hoffmann',
  'Ivanova',
  'Joshi',
];
const companies = [
  'Acme',
  'Globex',
  'Initech',
  'Umbrella',
  'Hooli',
  'Stark Industries',
  'Wayne & Sons',
  'Tyrell',
];

/** SQL for the properties of the row `person`, as JSON text. */
function propertiesOfPerson(random: SeededRandom): string {
  const first = random.oneOf('person', 'first name', firstNames);
  const last = random.oneOf('person', 'last name', lastNames);
  return jsonObject({
    email: jsonString(`'user-' || person || '@example.com'`),
    name: jsonString(`${first} || ' ' || ${last}`),
    plan: jsonString(plan(random, 'person')),
    company: jsonObject({
      name: random.oneOfJson('person', 'company', companies),
      seats: jsonNumber(`1 + ${random.integerBelow('person', 'seats', 250)}`),
    }),
    tags: random.oneOfJson('person', 'tags', [
      [],
      ['beta'],
      ['newsletter'],
      ['beta', 'newsletter', 'champion'],
    ]),
    country: jsonString(country(random, 'person')),
    lifetime_value: jsonNumber(`${random.integerBelow('person', 'value', 500_000)} / 100.0`),
    signed_up_days_ago: jsonNumber(random.integerBelow('person', 'signed up', 900)),
  });
}

/** The plan of a person, also in their events. */
const plan = (random: SeededRandom, person: string): string =>
  random.oneOf(person, 'plan', ['free', 'free', 'free', 'starter', 'team', 'enterprise']);

/** The country of a person, also in their events. */
const country = (random: SeededRandom, person: string): string =>
  random.oneOf(person, 'country', ['US', 'US', 'US', 'DE', 'GB', 'FR', 'BR', 'IN', 'JP', 'PL']);

/** SQL for the time of a row's last change, between two times. */
const changedAt = (random: SeededRandom, row: string, purpose: string, from: string, to: string): string =>
  `${from} + (${to} - ${from}) * ${random.fraction(row, purpose)}::float8`;

/**
 * Statements that insert the persons and their distinct ids: one for the signed-in person and one to three browsers.
 * @param from SQL for the earliest time of a change. @param to SQL for the latest.
 */
export function insertPersons(random: SeededRandom, teamId: number, from: string, to: string): string[] {
  const team = String(teamId);
  const persons = `generate_series(0, ${String(personCount - 1)}) as person`;
  const changed = changedAt(random, 'person', 'changed', from, to);
  return [
    `insert into public.persons (team_id, id, properties, created_at, updated_at, version, is_deleted)
     select ${team}, ${personId(random, 'person')}, (${propertiesOfPerson(random)})::jsonb,
       ${changed} - interval '1 day' * ${random.integerBelow('person', 'signed up', 900)}, ${changed},
       ${random.integerBelow('person', 'version', 12)}, ${random.integerBelow('person', 'deleted', 200)} = 0
     from ${persons}`,
    `insert into public.person_distinct_ids (team_id, distinct_id, person_id, version, updated_at, is_deleted)
     select ${team}, case device when 0 then ${knownDistinctId('person')} else ${deviceDistinctId(random, 'person', 'device')} end,
       ${personId(random, 'person')}, ${random.integerBelow('person * 4 + device', 'mapping version', 3)},
       ${changedAt(random, 'person * 4 + device', 'mapped', from, to)}, false
     from ${persons}, generate_series(0, 1 + ${random.integerBelow('person', 'devices', 3)}) as device`,
    `insert into public.cohort_people (team_id, cohort_id, cohort_name, person_id)
     select ${team}, 1, 'Beta testers', ${personId(random, 'person')} from ${persons}
     where ${random.integerBelow('person', 'beta tester', 20)} = 0`,
  ];
}

/** Number of organisations, which are groups of type 0. */
const organisationCount = 50;

/** The group key of the organisation with that number. */
const organisationKey = (organisation: string): string => `'org-' || lpad((${organisation})::text, 2, '0')`;

/** The number of a person's organisation; null for two in five. */
const personOrganisation = (random: SeededRandom, person: string): string =>
  `case when ${random.integerBelow(person, 'member', 5)} < 3 then ${random.integerBelow(person, 'organisation', organisationCount)} end`;

/** Second part of the names of organisations; the first is a company. */
const branches = ['Labs', 'Group', 'Media', 'Systems', 'Foods', 'Logistics', 'Studios'];

/** Repeats a list of texts over the organisations, each text `times` times in a row. */
const cycle = (texts: readonly string[], times: number): string =>
  `(array[${texts.map(sqlLiteral).join(', ')}])[1 + organisation / ${String(times)} % ${String(texts.length)}]`;

/** SQL for the properties of the row `organisation`, as JSON text. */
const organisationProperties = (random: SeededRandom): string =>
  jsonObject({
    name: jsonString(`${cycle(companies, 1)} || ' ' || ${cycle(branches, companies.length)}`),
    plan: jsonString(plan(random, 'organisation')),
    seats: jsonNumber(`5 + ${random.integerBelow('organisation', 'organisation seats', 500)}`),
    industry: random.oneOfJson('organisation', 'industry', [
      'software',
      'retail',
      'health',
      'energy',
      'media',
    ]),
    country: jsonString(country(random, 'organisation')),
  });

/**
 * A statement that inserts the organisations.
 * @param from SQL for the earliest time of a change. @param to SQL for the latest.
 */
export function insertGroups(random: SeededRandom, teamId: number, from: string, to: string): string {
  const changed = changedAt(random, 'organisation', 'organisation changed', from, to);
  return `insert into public.groups (team_id, group_type_index, group_key, group_properties, created_at, updated_at)
    select ${String(teamId)}, 0, ${organisationKey('organisation')}, (${organisationProperties(random)})::jsonb,
      ${changed} - interval '1 day' * ${random.integerBelow('organisation', 'founded', 900)}, ${changed}
    from generate_series(0, ${String(organisationCount - 1)}) as organisation`;
}

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
      '$pageview',
      '$pageview',
      '$pageview',
      '$autocapture',
      '$autocapture',
      '$autocapture',
      '$autocapture',
      'search',
      'feature_flag_called',
      'report_viewed',
      'signed_up',
      'purchase',
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
