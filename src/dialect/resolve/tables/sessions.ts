import type { SourceRelation } from '../../schema.ts';
import { bind, identifier, joinSql, rawSql, sql, type Sql } from '../../sql.ts';
import { arrayOf, scalarType, type Type } from '../../types.ts';
import { column, type PushdownTarget, type Relation, TeamRelation } from '../relation.ts';
import type { Statement } from '../statement.ts';
import {
  type FieldDefinitions,
  fieldOf,
  LazyJoins,
  starFieldsOf,
  PersonDistinctIdsRelation,
} from './persons.ts';

interface SessionField {
  readonly aggregate: Sql;
  readonly type: Type;
}

const timestamp = rawSql('"timestamp"');
const event = rawSql('"event"');
const property = (name: string): Sql => sql`("properties" ->> ${bind(name, 'text')})`;
/** The session id of an event. */
export const sessionId = property('$session_id');
const countOf = (name: string): Sql => sql`count(*) filter (where ${event} = ${bind(name, 'text')})`;

/** The first or last non-null value of a session. */
const firstOrLast = (value: Sql, direction: 'asc' | 'desc'): SessionField => ({
  aggregate: sql`(array_agg(${value} order by ${timestamp} ${rawSql(direction)}) filter (where ${value} is not null))[1]`,
  type: scalarType('string', true),
});

const url = property('$current_url');
/** Seconds, as dateDiff('second', …) counts them. */
const duration = sql`extract(epoch from date_trunc('second', max(${timestamp})) - date_trunc('second', min(${timestamp})))::bigint`;
const pathOf = (value: Sql): Sql => sql`substring(${value} from '^[a-z][a-z0-9+.-]*://[^/?#]*([^?#]*)')`;
const hostOf = (value: Sql): Sql =>
  sql`substring(${value} from '^[a-z][a-z0-9+.-]*://(?:[^/?#@]*@)?([^/?#:]*)')`;

const parameters = ['utm_source', 'utm_medium', 'utm_campaign', 'utm_term', 'utm_content', 'gclid', 'fbclid'];

/** Sources by kind, as names (`google`) and in domains (`www.google.de`). The kind is part of a channel's name. */
const sourceKinds: readonly (readonly [kind: string, names: string])[] = [
  ['Email', 'e-?mail|newsletter|mail\\.google|gmail|outlook|mail\\.yahoo|mailchimp|klaviyo|hubspot'],
  [
    'Search',
    'google|bing|yahoo|duckduckgo|baidu|yandex|ecosia|qwant|brave|startpage|naver|sogou|seznam|aol|presearch|kagi|ask',
  ],
  [
    'Social',
    'facebook|fb|instagram|ig|threads|twitter|x\\.com|t\\.co|linkedin|lnkd\\.in|reddit|pinterest|tiktok|snapchat|quora|tumblr|vk|weibo|bsky|bluesky|mastodon|whatsapp|telegram|discord|slack|news\\.ycombinator',
  ],
  ['Video', 'youtube|youtu\\.be|vimeo|twitch|dailymotion|netflix|hulu|disneyplus'],
  ['Shopping', 'amazon|ebay|etsy|walmart|aliexpress|alibaba|shopify|shopping|mercadolibre|shop\\.app'],
];

/** Media by channel. */
const mediumChannels: readonly (readonly [channel: string, media: string])[] = [
  ['Display', 'display|banner|expandable|interstitial|cpm'],
  ['Email', 'e[-_ ]?mail|newsletter'],
  ['Affiliate', 'affiliates?'],
  ['Referral', 'referral|app|link'],
  ['Audio', 'audio|podcast'],
  ['SMS', 'sms'],
  ['Push', '(mobile|web)?[-_ ]?push|.*notification'],
  ['Organic Social', 'social([-_ ](network|media))?|sm'],
  ['Organic Video', '.*video.*'],
  ['Organic Search', 'organic'],
];

/** The first alternative whose pattern a text matches; null for none, and for null. */
const firstMatch = (value: Sql, alternatives: readonly (readonly [result: string, pattern: string])[]): Sql =>
  sql`(case ${joinSql(
    alternatives.map(
      ([result, pattern]) => sql`when ${value} ~ ${bind(pattern, 'text')} then ${bind(result, 'text')}`,
    ),
    ' ',
  )} end)`;

/** How a visitor arrived, by the first campaign parameters and the first referrer of the session. */
function channelType(): SessionField {
  const entry = (name: string): Sql => firstOrLast(sql`nullif(${property(name)}, '')`, 'asc').aggregate;
  const [source, medium, campaign] = ['utm_source', 'utm_medium', 'utm_campaign'].map(
    (name) => sql`lower(${entry(name)})`,
  ) as [Sql, Sql, Sql];
  const [referrer, clickOfGoogle, clickOfFacebook] = [
    entry('$referring_domain'),
    sql`(${entry('gclid')} is not null or ${entry('gad_source')} is not null)`,
    sql`${entry('fbclid')} is not null`,
  ];
  const kindOf = (value: Sql): Sql =>
    firstMatch(
      value,
      sourceKinds.map(([kind, names]) => [kind, `(^|[./])(${names})(\\.|$)`]),
    );
  const paid = (value: Sql): Sql => sql`'Paid ' || nullif(${kindOf(value)}, 'Email')`;
  const organic = (value: Sql): Sql =>
    sql`case when ${kindOf(value)} = 'Email' then 'Email' else 'Organic ' || ${kindOf(value)} end`;
  const isShopping = sql`${campaign} ~ '(^|[^e])shop|shopping'`;
  return {
    type: scalarType('string'),
    aggregate: sql`case
      when ${campaign} ~ 'cross-network' then 'Cross Network'
      when ${medium} ~ '^(cp[cmva]|ppc|retargeting|paid.*)$' or ${clickOfGoogle} then coalesce(
        ${paid(source)}, case when ${isShopping} then 'Paid Shopping' end,
        case when ${medium} ~ 'social' then 'Paid Social' when ${medium} ~ 'video' then 'Paid Video'
          when ${medium} ~ 'search' then 'Paid Search' when ${medium} = 'cpm' then 'Display' end,
        ${paid(referrer)}, case when ${clickOfGoogle} then 'Paid Search' when ${campaign} ~ 'video' then 'Paid Video'
          when ${clickOfFacebook} then 'Paid Social' else 'Paid Unknown' end)
      when ${referrer} = '$direct' and ${medium} is null and not ${clickOfFacebook}
        and coalesce(${source}, 'direct') ~ '^[($]?direct[)]?$' then 'Direct'
      else coalesce(
        ${organic(source)}, case when ${isShopping} then 'Organic Shopping' end,
        ${firstMatch(
          medium,
          mediumChannels.map(([channel, media]) => [channel, `^(${media})$`]),
        )},
        ${organic(referrer)}, case when ${campaign} ~ 'video' then 'Organic Video'
          when ${clickOfFacebook} then 'Organic Social' when ${referrer} = '$direct' then 'Direct'
          when ${referrer} is not null then 'Referral' else 'Unknown' end)
    end`,
  };
}

const sessionFields: ReadonlyMap<string, SessionField> = new Map<string, SessionField>([
  ['session_id', { aggregate: sessionId, type: scalarType('string') }],
  ['id', { aggregate: sessionId, type: scalarType('string') }],
  ['distinct_id', { ...firstOrLast(rawSql('"distinct_id"'), 'asc'), type: scalarType('string') }],
  ['$start_timestamp', { aggregate: sql`min(${timestamp})`, type: scalarType('datetime') }],
  ['$end_timestamp', { aggregate: sql`max(${timestamp})`, type: scalarType('datetime') }],
  [
    '$urls',
    {
      aggregate: sql`coalesce(jsonb_agg(distinct ${url}) filter (where ${url} is not null), '[]'::jsonb)`,
      type: arrayOf(scalarType('string')),
    },
  ],
  ['$num_uniq_urls', { aggregate: sql`count(distinct ${url})`, type: scalarType('integer') }],
  ['$entry_current_url', firstOrLast(url, 'asc')],
  ['$entry_pathname', firstOrLast(pathOf(url), 'asc')],
  ['$entry_hostname', firstOrLast(hostOf(url), 'asc')],
  ['$entry_referring_domain', firstOrLast(property('$referring_domain'), 'asc')],
  ...parameters.map((name): [string, SessionField] => [`$entry_${name}`, firstOrLast(property(name), 'asc')]),
  ['$end_current_url', firstOrLast(url, 'desc')],
  ['$end_pathname', firstOrLast(pathOf(url), 'desc')],
  ['$end_hostname', firstOrLast(hostOf(url), 'desc')],
  ['$channel_type', channelType()],
  ['$pageview_count', { aggregate: countOf('$pageview'), type: scalarType('integer') }],
  ['$autocapture_count', { aggregate: countOf('$autocapture'), type: scalarType('integer') }],
  ['$screen_count', { aggregate: countOf('$screen'), type: scalarType('integer') }],
  ['$session_duration', { aggregate: duration, type: scalarType('integer') }],
  [
    '$is_bounce',
    {
      aggregate: sql`(${countOf('$pageview')} + ${countOf('$screen')} <= 1 and ${countOf('$autocapture')} = 0 and ${duration} < 10)`,
      type: scalarType('boolean'),
    },
  ],
]);

/** Sessions, aggregated from the project's events with the same `$session_id`. */
export class SessionsRelation implements Relation {
  readonly name: string | null;
  readonly #relation: TeamRelation;
  readonly #needed = new Map<string, Sql>();
  readonly #known: Sql[] = [];
  readonly #optional: boolean;

  /**
   * @param optional whether it is joined to rows that may have no session
   * @param sample the condition of SAMPLE on the events
   */
  constructor(
    statement: Statement,
    name: string | null,
    { optional = false, sample = null }: { readonly optional?: boolean; readonly sample?: Sql | null } = {},
  ) {
    this.name = name;
    this.#optional = optional;
    this.#relation = new TeamRelation(statement, statement.project.schema.events, name ?? 'sessions', {
      teamColumn: 'team_id',
      conditions: [sql`${sessionId} <> ''`, sample],
    });
  }

  readonly field: Relation['field'] = (name) => {
    const field = sessionFields.get(name);
    if (field === undefined)
      return name === '$last_external_click_url' || name === 'max_inserted_at'
        ? {
            kind: 'unsupported',
            summary: `The field ${name} of sessions is not supported.`,
            suggestion: null,
          }
        : undefined;
    return column(this.#column(name, field), {
      ...field.type,
      nullable: this.#optional || field.type.nullable,
    });
  };

  readonly names = (): readonly string[] => [...sessionFields.keys()];
  readonly star = (): readonly string[] => [...sessionFields.keys()].filter((name) => name !== 'id');

  readonly from = (): Sql => {
    const selected = [...this.#needed].map(([name, aggregate]) => sql`${aggregate} as ${identifier(name)}`);
    const query = this.#relation.query(selected.length === 0 ? [sessionId] : selected);
    return sql`(${query}${joinSql(this.#known, '')} group by ${sessionId}) as ${this.#relation.alias}`;
  };

  /** A session that starts or ends at some time has an event at that time. */
  readonly pushdownTargets = (): readonly PushdownTarget[] =>
    ['$start_timestamp', '$end_timestamp'].map((name) => {
      const time = sql`${timestamp} as ${identifier(name)}`;
      return {
        column: this.#relation.reference(name),
        otherColumns: [],
        pushDown: (conditions) => this.pushDown(this.#relation.alias, [time], conditions),
      };
    });

  /** Keeps only sessions with an event that satisfies these conditions, which read `columns` under an alias. */
  pushDown(alias: Sql, columns: readonly Sql[], conditions: readonly Sql[]): void {
    const events = this.#relation.query([sql`${sessionId} as session_id`, ...columns]);
    const all = joinSql(conditions, ' and ');
    this.keepOnly(sql`select ${alias}.session_id from (${events}) as ${alias} where ${all}`);
  }

  /** Keeps only sessions with an id that a query returns. */
  keepOnly(ids: Sql): void {
    this.#known.push(sql` and ${sessionId} in (${ids})`);
  }

  get id(): Sql {
    return this.#column('session_id', { aggregate: sessionId, type: scalarType('string') });
  }

  #column(name: string, { aggregate }: SessionField): Sql {
    this.#needed.set(name, aggregate);
    return this.#relation.reference(name);
  }
}

const count = (name: string): FieldDefinitions => ({ [name]: { column: name, kind: 'integer' } });

export const recordingFields: FieldDefinitions = {
  session_id: { column: 'session_id', kind: 'string' },
  distinct_id: { column: 'distinct_id', kind: 'string' },
  start_time: { column: 'min_first_timestamp', kind: 'datetime' },
  end_time: { column: 'max_last_timestamp', kind: 'datetime' },
  min_first_timestamp: { column: 'min_first_timestamp', kind: 'datetime', hidden: true },
  max_last_timestamp: { column: 'max_last_timestamp', kind: 'datetime', hidden: true },
  first_url: { column: 'first_url', kind: 'string', nullable: true },
  ...count('click_count'),
  ...count('keypress_count'),
  ...count('mouse_activity_count'),
  ...count('active_milliseconds'),
  ...count('console_log_count'),
  ...count('console_warn_count'),
  ...count('console_error_count'),
  ...count('size'),
  team_id: { column: 'team_id', kind: 'integer', hidden: true },
};

/** The columns of session recordings under their own names. */
export const rawRecordingFields: FieldDefinitions = Object.fromEntries(
  Object.entries(recordingFields)
    .filter(([name]) => name !== 'start_time' && name !== 'end_time')
    .map(([name, field]) => [name, { ...field, hidden: name === 'team_id' }]),
);

/** Session recordings, with the person of the distinct id. */
export class SessionReplayEventsRelation implements Relation {
  readonly name: string | null;
  readonly #statement: Statement;
  readonly #relation: TeamRelation;
  readonly #fields: FieldDefinitions;
  readonly #joins = new LazyJoins();

  /** @param sample the condition of SAMPLE */
  constructor(
    statement: Statement,
    source: SourceRelation,
    name: string | null,
    fields: FieldDefinitions,
    sample: Sql | null = null,
  ) {
    this.name = name;
    this.#statement = statement;
    this.#fields = fields;
    this.#relation = new TeamRelation(statement, source, name ?? 'session_replay_events', {
      teamColumn: 'team_id',
      conditions: [sample],
    });
  }

  readonly field: Relation['field'] = (name) => {
    if (name !== 'person' && name !== 'person_id') return fieldOf(this.#relation, this.#fields, name);
    const field = this.#personDistinctId().field(name);
    return field?.kind === 'column' ? column(field.sql, { ...field.type, nullable: true }) : field;
  };

  readonly names = (): readonly string[] => [...Object.keys(this.#fields), 'person', 'person_id'];
  readonly star = (): readonly string[] => starFieldsOf(this.#fields);
  readonly from = (): Sql => this.#joins.joinTo(this.#relation.from());

  #personDistinctId(): PersonDistinctIdsRelation {
    const distinctId = this.#relation.column('distinct_id');
    return this.#joins.getOrJoin('pdi', () => {
      const relation = new PersonDistinctIdsRelation(this.#statement, 'pdi');
      return { relation, condition: sql`${relation.distinctId} = ${distinctId}` };
    });
  }
}
