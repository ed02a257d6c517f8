import { type TimeUnit, timeUnitOf, timeUnits } from '../../keywords.ts';
import { derive, type Value } from '../../resolve/value.ts';
import { bind, ownText, sql, type Sql } from '../../sql.ts';
import { scalar } from '../../types.ts';
import { castValue } from '../casts.ts';
import { coerce } from '../coerce.ts';
import { dateParts } from '../date_parts.ts';
import { addInterval, intervalOf } from '../intervals.ts';
import { argument, type CallSite, type Emitted, type Emitter, nodeAt, optionalPiece, piece } from './site.ts';

/** The zone that a call names, else the project's. */
const zoneOf = (site: CallSite, place: number): Sql => optionalPiece(site, place) ?? site.statement.timezone;

/** A time as the clocks of a zone show it. */
const local = ({ sql: value, type }: Value, zone: Sql): Sql =>
  type.kind === 'date' ? sql`(${value})::timestamp` : sql`(${value} at time zone ${zone})`;

const nullable = (site: CallSite): boolean => site.values.some(({ type }) => type.nullable);

const part =
  (make: (local: Sql) => Sql): Emitter =>
  (site) => ({
    sql: make(local(argument(site, 0), zoneOf(site, 1))),
    type: scalar('integer', argument(site, 0).type.nullable),
  });

const field = (name: string): Emitter => part((time) => sql`(extract(${ownText(name)} from ${time}))::int8`);

/** The first moment of a unit, as a time. */
const startTime =
  (unit: string): Emitter =>
  (site) => {
    const value = argument(site, 0);
    const zone = zoneOf(site, 1);
    const name = ownText(`'${unit}'`);
    const piece_ =
      value.type.kind === 'date'
        ? sql`(date_trunc(${name}, (${value.sql})::timestamp) at time zone ${zone})`
        : sql`date_trunc(${name}, ${value.sql}, ${zone})`;
    return { sql: piece_, type: scalar('datetime', value.type.nullable) };
  };

/** The first day of a unit. */
const startDay =
  (unit: string): Emitter =>
  (site) => ({
    sql: sql`(date_trunc(${ownText(`'${unit}'`)}, ${local(argument(site, 0), zoneOf(site, 1))}))::date`,
    type: scalar('date', argument(site, 0).type.nullable),
  });

const monday = (time: Sql): Sql => sql`(date_trunc('week', ${time}))::date`;
const sunday = (time: Sql): Sql =>
  sql`((date_trunc('week', ${time} + interval '1 day') - interval '1 day')::date)`;

/** Even modes begin on Sunday, odd ones on Monday; without one it is the project's day. */
function beginsOnSunday(site: CallSite, place: number): boolean {
  const mode = site.values[place]?.constant;
  if (typeof mode === 'bigint') return mode % 2n === 0n;
  return site.statement.project.weekStartDay === 'sunday';
}

const startOfWeek: Emitter = (site) => {
  const time = local(argument(site, 0), zoneOf(site, 2));
  return {
    sql: beginsOnSunday(site, 1) ? sunday(time) : monday(time),
    type: scalar('date', argument(site, 0).type.nullable),
  };
};

/** Pieces of some minutes, counted from the hour. */
const minutes =
  (count: number): Emitter =>
  (site) => {
    const value = argument(site, 0);
    const zone = site.values[1]?.type.kind === 'string' ? zoneOf(site, 1) : site.statement.timezone;
    const size = ownText(`interval '${count} minutes'`);
    const time = local(value, zone);
    return {
      sql: sql`(date_bin(${size}, ${time}, date_trunc('day', ${time})) at time zone ${zone})`,
      type: scalar('datetime', value.type.nullable),
    };
  };

const intervalStarts: Readonly<Partial<Record<TimeUnit, (time: Sql, count: Sql) => Sql>>> = {
  year: (time, count) =>
    sql`make_date((floor(extract(year from ${time}) / ${count}) * ${count})::int4, 1, 1)::timestamp`,
  quarter: (time, count) => months(time, sql`(${count} * 3)`),
  month: (time, count) => months(time, count),
};

const months = (time: Sql, count: Sql): Sql =>
  sql`(timestamp '1970-01-01' + make_interval(months => (floor(((extract(year from ${time}) - 1970) * 12 + extract(month from ${time}) - 1) / ${count}) * ${count})::int4))`;

const startOfInterval: Emitter = (site) => {
  const node = site.nodes[1];
  const value = argument(site, 0);
  const zone = zoneOf(site, 2);
  if (node?.kind !== 'interval')
    throw site.statement.error(`Function '${site.name}' expects INTERVAL n UNIT.`, nodeAt(site, 1));
  const count = sql`(${site.compiler.value(node.amount, site.scope).sql})::int4`;
  const time = local(value, zone);
  const start =
    intervalStarts[node.unit]?.(time, count) ??
    sql`date_bin(${piece(site, 1)}, ${time}, timestamp '${ownText(node.unit === 'week' ? '1970-01-05' : '1970-01-01')}')`;
  const isDay = ['year', 'quarter', 'month', 'week'].includes(node.unit);
  return {
    sql: isDay ? sql`(${start})::date` : sql`(${start} at time zone ${zone})`,
    type: scalar(isDay ? 'date' : 'datetime', value.type.nullable),
  };
};

/** @throws DialectError for a unit that is none. */
function unitAt(site: CallSite, place: number): TimeUnit {
  const { constant } = argument(site, place);
  const unit = typeof constant === 'string' ? (timeUnitOf(constant) ?? shortUnits[constant]) : undefined;
  if (unit === undefined)
    throw site.statement.error(`A unit is one of ${timeUnits.join(', ')}.`, nodeAt(site, place));
  return unit;
}

const shortUnits: Readonly<Record<string, TimeUnit>> = {
  ss: 'second',
  s: 'second',
  mi: 'minute',
  n: 'minute',
  hh: 'hour',
  h: 'hour',
  dd: 'day',
  d: 'day',
  wk: 'week',
  ww: 'week',
  mm: 'month',
  m: 'month',
  qq: 'quarter',
  q: 'quarter',
  yy: 'year',
  yyyy: 'year',
};

/** How many bounds of a unit lie between two times. */
const difference: Emitter = (site) => {
  const unit = unitAt(site, 0);
  const zone = zoneOf(site, 3);
  const [from, to] = [local(argument(site, 1), zone), local(argument(site, 2), zone)];
  const type = scalar('integer', argument(site, 1).type.nullable || argument(site, 2).type.nullable);
  const count = (time: Sql): Sql => counts[unit](time);
  return { sql: sql`(${count(to)} - ${count(from)})::int8`, type };
};

const year = (time: Sql): Sql => sql`extract(year from ${time})`;
const elapsed =
  (unit: string, seconds: number) =>
  (time: Sql): Sql =>
    sql`floor(extract(epoch from date_trunc(${ownText(`'${unit}'`)}, ${time})) / ${ownText(String(seconds))})`;

const counts: Readonly<Record<TimeUnit, (time: Sql) => Sql>> = {
  year,
  quarter: (time) => sql`(${year(time)} * 4 + extract(quarter from ${time}))`,
  month: (time) => sql`(${year(time)} * 12 + extract(month from ${time}))`,
  week: (time) => sql`((${monday(time)} - date '1970-01-05') / 7)`,
  day: (time) => sql`((${time})::date - date '1970-01-01')`,
  hour: elapsed('hour', 3_600),
  minute: elapsed('minute', 60),
  second: elapsed('second', 1),
  millisecond: (time) => sql`floor(extract(epoch from ${time}) * 1000)`,
  microsecond: (time) => sql`(extract(epoch from ${time}) * 1000000)`,
};

/** Whole units between two times. */
const age: Emitter = (site) => {
  const unit = unitAt(site, 0);
  const zone = zoneOf(site, 3);
  const [from, to] = [local(argument(site, 1), zone), local(argument(site, 2), zone)];
  const type = scalar('integer', argument(site, 1).type.nullable || argument(site, 2).type.nullable);
  const inMonths = { month: 1, quarter: 3, year: 12 }[unit as 'month' | 'quarter' | 'year'] as
    number | undefined;
  if (inMonths !== undefined) {
    const whole = sql`age(${to}, ${from})`;
    return {
      sql: sql`trunc((extract(year from ${whole}) * 12 + extract(month from ${whole})) / ${ownText(String(inMonths))})::int8`,
      type,
    };
  }
  const lengths: Readonly<Record<string, number>> = {
    week: 604_800,
    day: 86_400,
    hour: 3_600,
    minute: 60,
    second: 1,
  };
  const seconds = ownText(String(lengths[unit] ?? (unit === 'millisecond' ? 0.001 : 0.000001)));
  return { sql: sql`trunc(extract(epoch from (${to} - ${from})) / ${seconds})::int8`, type };
};

/** `dateAdd(time, interval)` and `dateAdd('unit', n, time)`. */
const shifted =
  (sign: '+' | '-'): Emitter =>
  (site) => {
    const [first, second, third] = site.values;
    if (third === undefined) {
      const [time, interval] = first?.type.kind === 'interval' ? [second, first] : [first, second];
      return shift(site, time ?? argument(site, 0), interval ?? argument(site, 1), sign);
    }
    return shift(site, third, intervalOf(argument(site, 1), unitAt(site, 0)), sign);
  };

function shift(site: CallSite, time: Value, interval: Value, sign: '+' | '-'): Emitted {
  const isTime = time.type.kind === 'date' || time.type.kind === 'datetime';
  const taken = isTime ? time : castValue(time, scalar('datetime'), site.node, site.statement);
  if (interval.type.kind !== 'interval')
    throw site.statement.error(
      `Function '${site.name}' expects an interval.`,
      site.node,
      'Write INTERVAL 1 DAY.',
    );
  return addInterval(taken, interval, sign, site.statement);
}

const unitFunctions = timeUnits.flatMap((unit): readonly (readonly [string, Emitter])[] => {
  const name = `${unit.slice(0, 1).toUpperCase()}${unit.slice(1)}`;
  const amount = (site: CallSite, place: number): Value => intervalOf(argument(site, place), unit);
  return [
    [`add${name}s`, (site) => shift(site, argument(site, 0), amount(site, 1), '+')],
    [`subtract${name}s`, (site) => shift(site, argument(site, 0), amount(site, 1), '-')],
    [`toInterval${name}`, (site) => amount(site, 0)],
  ];
});

const dateTrunc: Emitter = (site) => {
  const unit = unitAt(site, 0);
  const inner: CallSite = { ...site, values: site.values.slice(1), nodes: site.nodes.slice(1) };
  const isDay = ['week', 'month', 'quarter', 'year'].includes(unit);
  return (isDay ? startDay(unit) : startTime(unit))(inner);
};

const today: Emitter = (site) => ({
  sql: sql`((${site.statement.now} at time zone ${site.statement.timezone})::date)`,
  type: scalar('date'),
});

const toDateTime: Emitter = (site) => {
  const zone = site.values.find(({ type }, place) => place > 0 && type.kind === 'string');
  const value = argument(site, 0);
  if (zone === undefined || typeof zone.constant !== 'string')
    return castValue(value, scalar('datetime'), nodeAt(site, 0), site.statement);
  const { project } = site.statement;
  const inZone = Object.assign(
    Object.create(Object.getPrototypeOf(site.statement) as object) as typeof site.statement,
    site.statement,
    {
      project: { ...project, timezone: zone.constant },
    },
  );
  return castValue(value, scalar('datetime'), nodeAt(site, 0), inZone);
};

const formats: Readonly<Record<string, string>> = {
  Y: 'YYYY',
  y: 'YY',
  m: 'MM',
  d: 'DD',
  e: 'FMDD',
  H: 'HH24',
  h: 'HH12',
  I: 'HH12',
  i: 'MI',
  M: 'FMMonth',
  s: 'SS',
  S: 'SS',
  p: 'AM',
  j: 'DDD',
  b: 'Mon',
  a: 'Dy',
  W: 'FMDay',
  f: 'US',
  F: 'YYYY-MM-DD',
  T: 'HH24:MI:SS',
  R: 'HH24:MI',
  D: 'MM/DD/YY',
  V: 'IW',
  G: 'IYYY',
  Q: 'Q',
  u: 'ID',
  c: 'FMMM',
  k: 'FMHH24',
  l: 'FMHH12',
};

const formatDateTime: Emitter = (site) => {
  const { constant } = argument(site, 1);
  if (typeof constant !== 'string')
    throw site.statement.error(`The format of '${site.name}' is a constant text.`, nodeAt(site, 1));
  const pattern = constant.replaceAll(/%(.)|([^%]+)/gs, (whole: string, letter?: string, text?: string) => {
    if (text !== undefined) return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
    if (letter === '%') return '"%"';
    const format = letter === undefined ? undefined : formats[letter];
    if (format === undefined)
      throw site.statement.error(`Unknown letter ${whole} in this format.`, nodeAt(site, 1));
    return format;
  });
  return {
    sql: sql`to_char(${local(argument(site, 0), zoneOf(site, 2))}, ${bind(pattern, 'text')})`,
    type: scalar('string', argument(site, 0).type.nullable),
  };
};

const monthName: Emitter = (site) => ({
  sql: sql`to_char(${local(argument(site, 0), site.statement.timezone)}, 'FMMonth')`,
  type: scalar('string', argument(site, 0).type.nullable),
});

/** Weeks of a year by the modes of MySQL that are used: 0 from the first Sunday, 1 and 3 of ISO 8601. */
const week: Emitter = (site) => {
  const time = local(argument(site, 0), zoneOf(site, 2));
  const mode =
    argument({ ...site, values: [...site.values, derive(sql`0`, scalar('integer'))] }, 1).constant ?? 0n;
  const type = scalar('integer', argument(site, 0).type.nullable);
  if (mode === 3n || mode === 1n) return { sql: sql`(extract(week from ${time}))::int8`, type };
  const first = sql`extract(dow from date_trunc('year', ${time}))`;
  return {
    sql: sql`floor((extract(doy from ${time}) - 1 + ${first}) / 7 + case when ${first} = 0 then 1 else 0 end)::int8`,
    type,
  };
};

const fromUnix: Emitter = (site) => ({
  sql: sql`to_timestamp((${piece(site, 0)})::float8)`,
  type: scalar('datetime', nullable(site)),
});

export const dateEmitters: Readonly<Record<string, Emitter>> = {
  ...Object.fromEntries(unitFunctions),
  now: (site) => ({ sql: site.statement.now, type: scalar('datetime') }),
  today,
  current_date: today,
  yesterday: (site) => ({
    sql: sql`((${site.statement.now} at time zone ${site.statement.timezone})::date - 1)`,
    type: scalar('date'),
  }),
  toDate: (site) => castValue(argument(site, 0), scalar('date'), nodeAt(site, 0), site.statement),
  toDateTime,
  toDateTime64: toDateTime,
  parseDateTimeBestEffort: toDateTime,
  toTimeZone: (site) => ({ sql: piece(site, 0), type: site.gives }),
  toYear: part((time) => sql`(extract(year from ${time}))::int8`),
  toQuarter: field('quarter'),
  toMonth: field('month'),
  toDayOfYear: field('doy'),
  toDayOfMonth: field('day'),
  toDayOfWeek: field('isodow'),
  toHour: field('hour'),
  toMinute: field('minute'),
  toSecond: part(dateParts.second ?? ((time) => time)),
  toISOWeek: field('week'),
  toISOYear: field('isoyear'),
  toWeek: week,
  toYYYYMM: part((time) => sql`(to_char(${time}, 'YYYYMM'))::int8`),
  toYYYYMMDD: part((time) => sql`(to_char(${time}, 'YYYYMMDD'))::int8`),
  toUnixTimestamp: (site) => {
    const value = argument(site, 0);
    const time = coerce(value, scalar('datetime', value.type.nullable), site.statement);
    return {
      sql: sql`(floor(extract(epoch from ${time})))::int8`,
      type: scalar('integer', value.type.nullable),
    };
  },
  fromUnixTimestamp: fromUnix,
  to_timestamp: fromUnix,
  toStartOfYear: startDay('year'),
  toStartOfQuarter: startDay('quarter'),
  toStartOfMonth: startDay('month'),
  toStartOfWeek: startOfWeek,
  toMonday: (site) => ({
    sql: monday(local(argument(site, 0), zoneOf(site, 1))),
    type: scalar('date', argument(site, 0).type.nullable),
  }),
  toStartOfDay: startTime('day'),
  toStartOfHour: startTime('hour'),
  toStartOfMinute: startTime('minute'),
  toStartOfSecond: startTime('second'),
  toStartOfFiveMinutes: minutes(5),
  toStartOfTenMinutes: minutes(10),
  toStartOfFifteenMinutes: minutes(15),
  timeSlot: minutes(30),
  toStartOfInterval: startOfInterval,
  toLastDayOfMonth: (site) => ({
    sql: sql`((date_trunc('month', ${local(argument(site, 0), zoneOf(site, 1))}) + interval '1 month - 1 day')::date)`,
    type: scalar('date', argument(site, 0).type.nullable),
  }),
  dateDiff: difference,
  date_diff: difference,
  age,
  dateAdd: shifted('+'),
  dateSub: shifted('-'),
  dateTrunc,
  date_trunc: dateTrunc,
  date_part: (site) => {
    const make = dateParts[unitAt(site, 0)];
    const value = argument(site, 1);
    const time = local(value, site.statement.timezone);
    return { sql: sql`(${make?.(time) ?? time})::float8`, type: scalar('float', value.type.nullable) };
  },
  formatDateTime,
  monthName,
  make_date: (site) => ({
    sql: sql`make_date((${piece(site, 0)})::int4, (${piece(site, 1)})::int4, (${piece(site, 2)})::int4)`,
    type: scalar('date', nullable(site)),
  }),
};
