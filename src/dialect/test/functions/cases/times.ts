import type { CasesByFunction } from './case_rows.ts';

/** Cases of functions of dates and times. */
export const timeCases: CasesByFunction = {
  now: { "now() > toDateTime('2024-01-01 00:00:00')": 1, "dateDiff('day', now(), now())": 0 },
  today: { "today() > toDate('2024-01-01')": 1 },
  yesterday: { 'yesterday() < today()': 1, "dateDiff('day', today(), yesterday())": -1 },
  current_date: { 'current_date() = today()': 1 },
  toDate: {
    "toDate('2024-01-02')": '2024-01-02',
    "toDate('')": null,
    "toDate(toDateTime('2024-03-10 23:30:00'))": '2024-03-10',
  },
  toDateTime: {
    "toDateTime('2024-01-02 03:04:05')": '2024-01-02T08:04:05Z',
    "toDateTime('2024-01-02')": '2024-01-02T05:00:00Z',
    "toDateTime('2024-01-02T03:04:05Z')": '2024-01-02T03:04:05Z',
  },
  toDateTime64: {
    "toDateTime64('2024-01-02 03:04:05.678', 3)": '2024-01-02T08:04:05.678Z',
    "toDateTime64('2024-01-02 03:04:05', 6)": '2024-01-02T08:04:05Z',
    'toDateTime64(NULL, 3)': null,
  },
  parseDateTime: {
    "parseDateTime('2024-01-02 03:04:05', '%Y-%m-%d %H:%i:%s')": '2024-01-02T08:04:05Z',
    "parseDateTime('02/01/2024', '%d/%m/%Y')": '2024-01-02T05:00:00Z',
    "parseDateTime('abc', '%Y')": null,
  },
  parseDateTimeBestEffort: {
    "parseDateTimeBestEffort('2024-01-02 03:04:05')": '2024-01-02T08:04:05Z',
    "parseDateTimeBestEffort('2024-01-02T03:04:05Z')": '2024-01-02T03:04:05Z',
    "parseDateTimeBestEffort('abc')": null,
  },
  toTimeZone: {
    "toHour(toTimeZone(toDateTime('2024-01-02 03:04:05'), 'UTC'))": 8,
    "toDate(toTimeZone(toDateTime('2024-01-02 23:04:05'), 'Asia/Tokyo'))": '2024-01-03',
    "toTimeZone(NULL, 'UTC')": null,
  },
  fromUnixTimestamp: {
    'fromUnixTimestamp(1704164645)': '2024-01-02T03:04:05Z',
    'fromUnixTimestamp(0)': '1970-01-01T00:00:00Z',
    'fromUnixTimestamp(NULL)': null,
  },
  formatDateTime: {
    "formatDateTime(toDateTime('2024-05-02 03:04:05'), '%Y-%m-%d %H:%i:%S')": '2024-05-02 03:04:05',
    "formatDateTime(toDateTime('2024-05-02 13:04:05'), '%y %e %I %p')": '24 2 01 PM',
    "formatDateTime(toDate('2024-05-02'), '%F')": '2024-05-02',
  },
  make_date: {
    'make_date(2024, 1, 1)': '2024-01-01',
    'make_date(2024, 12, 31)': '2024-12-31',
    'make_date(2024, 2, 29)': '2024-02-29',
  },
  make_timestamp: {
    'make_timestamp(2024, 1, 2, 3, 4, 5.5)': '2024-01-02T08:04:05.500Z',
    'make_timestamp(2024, 1, 2, 25, 4, 5)': null,
    'make_timestamp(2024, 7, 1, 0, 0, 0)': '2024-07-01T04:00:00Z',
  },
  to_char: {
    "to_char(toDateTime('2024-01-02 13:04:05'), 'YYYY/MM/DD HH24')": '2024/01/02 13',
    "to_char(toDate('2024-01-02'), 'Mon')": 'Jan',
    "to_char(1234.5, 'FM9999.00')": '1234.50',
  },
  to_timestamp: {
    'to_timestamp(1704164645)': '2024-01-02T03:04:05Z',
    'to_timestamp(NULL)': null,
    "to_timestamp('2024-01-02 00:00:00')": '2024-01-02T05:00:00Z',
  },
  toYear: {
    "toYear(toDateTime('2024-01-02 03:04:05'))": 2024,
    "toYear(toDate('1999-12-31'))": 1999,
    'toYear(NULL)': null,
  },
  toQuarter: {
    "toQuarter(toDateTime('2024-01-02 03:04:05'))": 1,
    "toQuarter(toDate('2024-12-31'))": 4,
    'toQuarter(NULL)': null,
  },
  toMonth: {
    "toMonth(toDateTime('2024-01-02 03:04:05'))": 1,
    "toMonth(toDate('2024-12-31'))": 12,
    'toMonth(NULL)': null,
  },
  toDayOfYear: {
    "toDayOfYear(toDateTime('2024-01-02 03:04:05'))": 2,
    "toDayOfYear(toDate('2024-12-31'))": 366,
    'toDayOfYear(NULL)': null,
  },
  toDayOfMonth: {
    "toDayOfMonth(toDateTime('2024-01-02 03:04:05'))": 2,
    "toDayOfMonth(toDate('2024-12-31'))": 31,
    'toDayOfMonth(NULL)': null,
  },
  toDayOfWeek: {
    "toDayOfWeek(toDateTime('2024-01-02 03:04:05'))": 2,
    "toDayOfWeek(toDate('2024-01-07'))": 7,
    'toDayOfWeek(NULL)': null,
  },
  toHour: {
    "toHour(toDateTime('2024-01-02 03:04:05'))": 3,
    "toHour(toDateTime('2024-07-01T00:00:00Z'))": 20,
    'toHour(NULL)': null,
  },
  toMinute: {
    "toMinute(toDateTime('2024-01-02 03:04:05'))": 4,
    "toMinute(toDateTime('2024-07-01T00:00:00Z'))": 0,
    'toMinute(NULL)': null,
  },
  toSecond: {
    "toSecond(toDateTime('2024-01-02 03:04:05'))": 5,
    "toSecond(toDateTime('2024-07-01T00:00:00Z'))": 0,
    'toSecond(NULL)': null,
  },
  toUnixTimestamp: {
    "toUnixTimestamp(toDateTime('2024-01-02 03:04:05'))": 1704182645,
    "toUnixTimestamp(toDate('2024-01-02'))": 1704153600,
    'toUnixTimestamp(NULL)': null,
  },
  toISOWeek: {
    "toISOWeek(toDate('2024-01-01'))": 1,
    "toISOWeek(toDate('2023-01-01'))": 52,
    "toISOWeek(toDate('2020-12-31'))": 53,
  },
  toISOYear: {
    "toISOYear(toDate('2024-01-01'))": 2024,
    "toISOYear(toDate('2023-01-01'))": 2022,
    "toISOYear(toDate('2020-12-31'))": 2020,
  },
  toWeek: {
    "toWeek(toDate('2024-01-01'))": 0,
    "toWeek(toDate('2023-01-01'))": 1,
    "toWeek(toDate('2020-12-31'))": 52,
  },
  toYearWeek: {
    "toYearWeek(toDate('2024-01-01'))": 202353,
    "toYearWeek(toDate('2023-01-01'))": 202301,
    "toYearWeek(toDate('2020-12-31'))": 202052,
  },
  toYYYYMM: {
    "toYYYYMM(toDateTime('2024-05-02 03:04:05'))": 202405,
    "toYYYYMM(toDate('1999-12-31'))": 199912,
    'toYYYYMM(NULL)': null,
  },
  toYYYYMMDD: {
    "toYYYYMMDD(toDateTime('2024-05-02 03:04:05'))": 20240502,
    "toYYYYMMDD(toDate('1999-12-31'))": 19991231,
    'toYYYYMMDD(NULL)': null,
  },
  date_part: {
    "date_part('year', toDate('2024-05-02'))": 2024,
    "date_part('hour', toDateTime('2024-01-02 13:04:05'))": 13,
    "date_part('dow', toDate('2024-05-05'))": 7,
  },
  dateName: {
    "dateName('month', toDate('2024-05-02'))": 'May',
    "dateName('weekday', toDate('2024-05-02'))": 'Thursday',
    "dateName('year', toDate('2024-05-02'))": '2024',
  },
  monthName: {
    "monthName(toDate('2024-05-02'))": 'May',
    "monthName(toDateTime('2024-12-02 03:04:05'))": 'December',
    'monthName(NULL)': null,
  },
  toStartOfYear: {
    "toStartOfYear(toDateTime('2024-05-02 03:04:05'))": '2024-01-01',
    'toStartOfYear(NULL)': null,
    "toStartOfYear(toDateTime('2024-01-01T02:00:00Z'))": '2023-01-01',
  },
  toStartOfQuarter: {
    "toStartOfQuarter(toDateTime('2024-05-02 03:04:05'))": '2024-04-01',
    "toStartOfQuarter(toDate('2024-12-31'))": '2024-10-01',
    'toStartOfQuarter(NULL)': null,
  },
  toStartOfMonth: {
    "toStartOfMonth(toDateTime('2024-05-02 03:04:05'))": '2024-05-01',
    "toStartOfMonth(toDate('2024-12-31'))": '2024-12-01',
    'toStartOfMonth(NULL)': null,
  },
  toStartOfWeek: {
    "toStartOfWeek(toDateTime('2024-05-02 03:04:05'))": '2024-04-28',
    "toStartOfWeek(toDate('2024-05-05'))": '2024-05-05',
    'toStartOfWeek(NULL)': null,
  },
  toStartOfDay: {
    "toStartOfDay(toDateTime('2024-05-02 03:04:05'))": '2024-05-02T04:00:00Z',
    'toStartOfDay(NULL)': null,
    "toStartOfDay(toDateTime('2024-03-10T12:00:00Z'))": '2024-03-10T05:00:00Z',
  },
  toStartOfHour: {
    "toStartOfHour(toDateTime('2024-05-02 03:04:05'))": '2024-05-02T07:00:00Z',
    'toStartOfHour(NULL)': null,
    "toStartOfHour(toDateTime('2024-11-03T05:30:00Z'))": '2024-11-03T05:00:00Z',
  },
  toStartOfMinute: {
    "toStartOfMinute(toDateTime('2024-05-02 03:04:05'))": '2024-05-02T07:04:00Z',
    'toStartOfMinute(NULL)': null,
    "toStartOfMinute(toDateTime('2024-11-03T06:30:59Z'))": '2024-11-03T06:30:00Z',
  },
  toStartOfSecond: {
    "toStartOfSecond(toDateTime64('2024-05-02 03:04:05.678', 3))": '2024-05-02T07:04:05.000Z',
    'toStartOfSecond(NULL)': null,
  },
  toStartOfFiveMinutes: {
    "toStartOfFiveMinutes(toDateTime('2024-05-02 03:04:05'))": '2024-05-02T07:00:00Z',
    'toStartOfFiveMinutes(NULL)': null,
    "toStartOfFiveMinutes(toDateTime('2024-05-02 03:59:59'))": '2024-05-02T07:55:00Z',
  },
  toStartOfTenMinutes: {
    "toStartOfTenMinutes(toDateTime('2024-05-02 03:14:05'))": '2024-05-02T07:10:00Z',
    'toStartOfTenMinutes(NULL)': null,
    "toStartOfTenMinutes(toDateTime('2024-11-03T06:39:00Z'))": '2024-11-03T06:30:00Z',
  },
  toStartOfFifteenMinutes: {
    "toStartOfFifteenMinutes(toDateTime('2024-05-02 03:14:05'))": '2024-05-02T07:00:00Z',
    'toStartOfFifteenMinutes(NULL)': null,
    "toStartOfFifteenMinutes(toDateTime('2024-05-02 03:45:00'))": '2024-05-02T07:45:00Z',
  },
  toStartOfInterval: {
    "toStartOfInterval(toDateTime('2024-05-02 03:14:05'), INTERVAL 1 DAY)": '2024-05-02T04:00:00Z',
    "toStartOfInterval(toDateTime('2024-05-02 03:14:05'), INTERVAL 2 HOUR)": '2024-05-02T06:00:00Z',
    "toStartOfInterval(toDateTime('2024-05-02 03:14:05'), INTERVAL 1 MONTH)": '2024-05-01',
  },
  toMonday: {
    "toMonday(toDateTime('2024-05-02 03:04:05'))": '2024-04-29',
    'toMonday(NULL)': null,
    "toMonday(toDate('2024-05-06'))": '2024-05-06',
  },
  toLastDayOfMonth: {
    "toLastDayOfMonth(toDateTime('2024-02-02 03:04:05'))": '2024-02-29',
    "toLastDayOfMonth(toDate('2023-02-05'))": '2023-02-28',
    'toLastDayOfMonth(NULL)': null,
  },
  dateTrunc: {
    "dateTrunc('day', toDateTime('2024-05-02 03:04:05'))": '2024-05-02T04:00:00Z',
    "dateTrunc('month', toDateTime('2024-05-02 03:04:05'))": '2024-05-01',
    "dateTrunc('hour', toDateTime('2024-05-02 03:04:05'))": '2024-05-02T07:00:00Z',
  },
  date_trunc: {
    "date_trunc('day', toDateTime('2024-05-02 03:04:05'))": '2024-05-02T04:00:00Z',
    "date_trunc('month', toDateTime('2024-05-02 03:04:05'))": '2024-05-01',
    "date_trunc('hour', toDateTime('2024-05-02 03:04:05'))": '2024-05-02T07:00:00Z',
  },
  timeSlot: {
    "timeSlot(toDateTime('2024-05-02 03:14:05'))": '2024-05-02T07:00:00Z',
    "timeSlot(toDateTime('2024-05-02 03:44:05'))": '2024-05-02T07:30:00Z',
    'timeSlot(NULL)': null,
  },
  date_bin: {
    "date_bin(INTERVAL 15 MINUTE, toDateTime('2024-01-01 10:20:00'), toDateTime('2024-01-01 00:00:00'))":
      '2024-01-01T15:15:00Z',
    "date_bin(INTERVAL 0 MINUTE, toDateTime('2024-01-01 10:20:00'), toDateTime('2024-01-01 00:00:00'))": null,
  },
  addSeconds: {
    "addSeconds(toDateTime('2024-01-01 23:59:59'), 1)": '2024-01-02T05:00:00Z',
    "addSeconds(toDateTime('2024-01-01 00:00:00'), -1)": '2024-01-01T04:59:59Z',
    'addSeconds(NULL, 1)': null,
  },
  subtractSeconds: {
    "subtractSeconds(toDateTime('2024-01-01 00:00:00'), 1)": '2024-01-01T04:59:59Z',
    'subtractSeconds(NULL, 1)': null,
    "subtractSeconds(toDateTime('2024-01-01 00:00:00'), 0)": '2024-01-01T05:00:00Z',
  },
  toIntervalSecond: {
    "toDateTime('2024-01-01 00:00:00') + toIntervalSecond(90)": '2024-01-01T05:01:30Z',
    "toDateTime('2024-01-01 00:00:00') - toIntervalSecond(1)": '2024-01-01T04:59:59Z',
    "toDateTime('2024-01-01 00:00:00') + toIntervalSecond(0)": '2024-01-01T05:00:00Z',
  },
  addMinutes: {
    "addMinutes(toDateTime('2024-01-01 23:59:59'), 1)": '2024-01-02T05:00:59Z',
    "addMinutes(toDateTime('2024-01-01 00:00:00'), -1)": '2024-01-01T04:59:00Z',
    'addMinutes(NULL, 1)': null,
  },
  subtractMinutes: {
    "subtractMinutes(toDateTime('2024-01-01 00:00:00'), 1)": '2024-01-01T04:59:00Z',
    'subtractMinutes(NULL, 1)': null,
    "subtractMinutes(toDateTime('2024-01-01 00:00:00'), -5)": '2024-01-01T05:05:00Z',
  },
  toIntervalMinute: {
    "toDateTime('2024-01-01 00:00:00') + toIntervalMinute(90)": '2024-01-01T06:30:00Z',
    "toDateTime('2024-01-01 00:00:00') - toIntervalMinute(1)": '2024-01-01T04:59:00Z',
    "toDateTime('2024-01-01 00:00:00') + toIntervalMinute(0)": '2024-01-01T05:00:00Z',
  },
  addHours: {
    "addHours(toDateTime('2024-01-01 23:59:59'), 1)": '2024-01-02T05:59:59Z',
    "addHours(toDateTime('2024-03-10T06:30:00Z'), 1)": '2024-03-10T07:30:00Z',
    'addHours(NULL, 1)': null,
  },
  subtractHours: {
    "subtractHours(toDateTime('2024-01-01 00:00:00'), 1)": '2024-01-01T04:00:00Z',
    'subtractHours(NULL, 1)': null,
    "subtractHours(toDateTime('2024-11-03T06:30:00Z'), 1)": '2024-11-03T05:30:00Z',
  },
  toIntervalHour: {
    "toDateTime('2024-01-01 00:00:00') + toIntervalHour(90)": '2024-01-04T23:00:00Z',
    "toDateTime('2024-01-01 00:00:00') - toIntervalHour(1)": '2024-01-01T04:00:00Z',
    "toDateTime('2024-01-01 00:00:00') + toIntervalHour(0)": '2024-01-01T05:00:00Z',
  },
  addDays: {
    "addDays(toDateTime('2024-02-28 23:59:59'), 1)": '2024-03-01T04:59:59Z',
    "addDays(toDateTime('2024-03-09T17:30:00Z'), 1)": '2024-03-10T16:30:00Z',
    'addDays(NULL, 1)': null,
  },
  subtractDays: {
    "subtractDays(toDateTime('2024-03-01 00:00:00'), 1)": '2024-02-29T05:00:00Z',
    'subtractDays(NULL, 1)': null,
    "subtractDays(toDate('2024-01-01'), 1)": '2023-12-31',
  },
  toIntervalDay: {
    "toDate('2024-01-31') + toIntervalDay(1)": '2024-02-01',
    "toDate('2024-03-31') - toIntervalDay(1)": '2024-03-30',
    "toDateTime('2024-02-29 10:00:00') + toIntervalDay(3)": '2024-03-03T15:00:00Z',
  },
  addWeeks: {
    "addWeeks(toDateTime('2024-02-28 23:59:59'), 1)": '2024-03-07T04:59:59Z',
    "addWeeks(toDate('2024-01-01'), -1)": '2023-12-25',
    'addWeeks(NULL, 1)': null,
  },
  subtractWeeks: {
    "subtractWeeks(toDateTime('2024-03-01 00:00:00'), 1)": '2024-02-23T05:00:00Z',
    'subtractWeeks(NULL, 1)': null,
    "subtractWeeks(toDate('2024-01-01'), 1)": '2023-12-25',
  },
  toIntervalWeek: {
    "toDate('2024-01-31') + toIntervalWeek(1)": '2024-02-07',
    "toDate('2024-03-31') - toIntervalWeek(1)": '2024-03-24',
    "toDateTime('2024-02-29 10:00:00') + toIntervalWeek(3)": '2024-03-21T14:00:00Z',
  },
  addMonths: {
    "addMonths(toDateTime('2024-01-31 23:59:59'), 1)": '2024-03-01T04:59:59Z',
    "addMonths(toDate('2024-03-31'), -1)": '2024-02-29',
    'addMonths(NULL, 1)': null,
  },
  subtractMonths: {
    "subtractMonths(toDateTime('2024-03-31 00:00:00'), 1)": '2024-02-29T05:00:00Z',
    'subtractMonths(NULL, 1)': null,
    "subtractMonths(toDate('2024-01-01'), 1)": '2023-12-01',
  },
  toIntervalMonth: {
    "toDate('2024-01-31') + toIntervalMonth(1)": '2024-02-29',
    "toDateTime('2024-02-29 10:00:00') + toIntervalMonth(3)": '2024-05-29T14:00:00Z',
    "toDate('2024-01-31') + toIntervalMonth(0)": '2024-01-31',
  },
  addQuarters: {
    "addQuarters(toDateTime('2024-01-31 23:59:59'), 1)": '2024-05-01T03:59:59Z',
    "addQuarters(toDate('2024-03-31'), -1)": '2023-12-31',
    'addQuarters(NULL, 1)': null,
  },
  subtractQuarters: {
    "subtractQuarters(toDateTime('2024-05-31 00:00:00'), 1)": '2024-02-29T05:00:00Z',
    'subtractQuarters(NULL, 1)': null,
    "subtractQuarters(toDate('2024-01-01'), 1)": '2023-10-01',
  },
  toIntervalQuarter: {
    "toDate('2024-01-31') + toIntervalQuarter(1)": '2024-04-30',
    "toDate('2024-03-31') - toIntervalQuarter(1)": '2023-12-31',
    "toDateTime('2024-02-29 10:00:00') + toIntervalQuarter(3)": '2024-11-29T15:00:00Z',
  },
  addYears: {
    "addYears(toDateTime('2024-02-29 23:59:59'), 1)": '2025-03-01T04:59:59Z',
    "addYears(toDate('2024-03-31'), -1)": '2023-03-31',
    'addYears(NULL, 1)': null,
  },
  subtractYears: {
    "subtractYears(toDateTime('2024-02-29 00:00:00'), 1)": '2023-02-28T05:00:00Z',
    'subtractYears(NULL, 1)': null,
    "subtractYears(toDate('2024-01-01'), 1)": '2023-01-01',
  },
  toIntervalYear: {
    "toDate('2024-01-31') + toIntervalYear(1)": '2025-01-31',
    "toDate('2024-03-31') - toIntervalYear(1)": '2023-03-31',
    "toDateTime('2024-02-29 10:00:00') + toIntervalYear(3)": '2027-02-28T15:00:00Z',
  },
  dateDiff: {
    "dateDiff('day', toDate('2024-01-01'), toDate('2024-02-01'))": 31,
    "dateDiff('month', toDate('2024-01-31'), toDate('2024-02-01'))": 1,
    "dateDiff('day', NULL, toDate('2024-01-01'))": null,
  },
  date_diff: {
    "date_diff('day', toDate('2024-01-01'), toDate('2024-02-01'))": 31,
    "date_diff('day', toDate('2024-01-01'), NULL)": null,
    "date_diff('minute', toDateTime('2024-01-01 00:00:00'), toDateTime('2024-01-01 01:00:30'))": 60,
  },
  age: {
    "age('month', toDate('2024-01-31'), toDate('2024-02-29'))": 0,
    "age('year', toDate('2020-02-29'), toDate('2024-02-28'))": 3,
    "age('day', NULL, toDate('2024-01-01'))": null,
  },
  dateAdd: {
    "dateAdd('day', 1, toDate('2024-02-28'))": '2024-02-29',
    "dateAdd('hour', 5, toDateTime('2024-01-01 22:00:00'))": '2024-01-02T08:00:00Z',
    "dateAdd(toDate('2024-01-01'), INTERVAL 1 WEEK)": '2024-01-08',
  },
  dateSub: {
    "dateSub('day', 1, toDate('2024-03-01'))": '2024-02-29',
    "dateSub('hour', 5, toDateTime('2024-01-01 02:00:00'))": '2024-01-01T02:00:00Z',
    "dateSub(toDate('2024-01-01'), INTERVAL 1 WEEK)": '2023-12-25',
  },
  make_interval: {
    "toDate('2024-01-31') + make_interval(0, 0, 1)": '2024-02-01',
    "toDateTime('2024-01-01 00:00:00') + make_interval(0, 0, 0, 2)": '2024-01-01T07:00:00Z',
    "toDateTime('2024-01-01 00:00:00') + make_interval(1)": '2025-01-01T05:00:00Z',
  },
  toUnixTimestamp64Second: {
    "toUnixTimestamp64Second(toDateTime64('2024-03-05 10:11:12.123', 3))": 1709651472,
  },
  fromUnixTimestamp64Second: { 'fromUnixTimestamp64Second(1700000000)': '2023-11-14T22:13:20Z' },
  toUnixTimestamp64Milli: {
    "toUnixTimestamp64Milli(toDateTime64('2024-03-05 10:11:12.123', 3))": 1709651472123,
    "toUnixTimestamp64Milli(toDateTime64('1969-12-31 10:11:12.123', 3))": -31727877,
  },
  fromUnixTimestamp64Milli: {
    'fromUnixTimestamp64Milli(1700000000123)': '2023-11-14T22:13:20.123Z',
    "fromUnixTimestamp64Milli(1700000000123, 'UTC')": '2023-11-14T22:13:20.123Z',
    'fromUnixTimestamp64Milli(-5)': '1969-12-31T23:59:59.995Z',
  },
  toUnixTimestamp64Micro: {
    "toUnixTimestamp64Micro(toDateTime64('2024-03-05 10:11:12.123456', 6))": 1709651472123456,
  },
  fromUnixTimestamp64Micro: { 'fromUnixTimestamp64Micro(1700000000123456)': '2023-11-14T22:13:20.123456Z' },
  toUnixTimestamp64Nano: {
    "toUnixTimestamp64Nano(toDateTime64('2024-03-05 10:11:12.123456', 6))": 1709651472123456000,
  },
  fromUnixTimestamp64Nano: {
    'fromUnixTimestamp64Nano(1700000000123456000)': '2023-11-14T22:13:20.123456000Z',
  },
  timeZoneOf: { "timeZoneOf(toDateTime('2024-03-05 10:11:12'))": 'America/New_York' },
  UUIDv7ToDateTime: {
    "UUIDv7ToDateTime(toUUID('018f05c9-4ab8-7b86-b64e-c9f03fbd45d1'))": '2024-04-22T12:30:29.048Z',
    "UUIDv7ToDateTime(toUUID('018f05c9-4ab8-7b86-b64e-c9f03fbd45d1'), 'UTC')": '2024-04-22T12:30:29.048Z',
    "UUIDv7ToDateTime(toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0'))": null,
  },
  tumbleStart: {
    "tumbleStart(toDateTime('2024-03-05 10:11:12'), toIntervalHour(1))": '2024-03-05T15:00:00.000Z',
    "tumbleStart(toDateTime('2024-03-05 10:11:12'), toIntervalDay(1))": '2024-03-05T05:00:00.000Z',
  },
  tumbleEnd: {
    "tumbleEnd(toDateTime('2024-03-05 10:11:12'), toIntervalHour(1))": '2024-03-05T16:00:00.000Z',
    "tumbleEnd(toDateTime('2024-03-05 10:11:12'), toIntervalDay(1))": '2024-03-06T05:00:00.000Z',
  },
  toStartOfISOYear: {
    "toStartOfISOYear(toDate('2024-01-01'))": '2024-01-01',
    "toStartOfISOYear(toDate('2021-01-01'))": '2019-12-30',
    "toStartOfISOYear(toDate('2020-12-31'))": '2019-12-30',
  },
  toLastDayOfWeek: {
    "toLastDayOfWeek(toDate('2024-03-05'))": '2024-03-09',
    "toLastDayOfWeek(toDate('2024-03-05'), 1)": '2024-03-10',
    "toLastDayOfWeek(toDate('2024-03-10'))": '2024-03-16',
  },
};
