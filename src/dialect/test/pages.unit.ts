import { describe, expect, it } from '@jest/globals';
import { compileQuery } from '../compile/compile_query.ts';
import { project } from './project.ts';

describe('rows chosen by ORDER BY and LIMIT', () => {
  /** The rest of the statement joins others to the page. */
  const isPage = (query: string): boolean =>
    compileQuery(query, project).sql.startsWith('with "page$1" as (');

  it.each([
    'SELECT person.properties.email FROM events ORDER BY timestamp DESC LIMIT 100',
    'SELECT person.properties.email FROM events',
    "SELECT event, person_id FROM events AS e WHERE e.event = 'a' ORDER BY toStartOfDay(timestamp), uuid LIMIT 5 OFFSET 2",
    "SELECT session.$session_duration, group_0.key FROM events WHERE properties.plan = 'a' AND $group_0 != '' LIMIT 3",
    'SELECT pdi.person_id, poe.properties.email AS mail FROM events ORDER BY pdi.distinct_id LIMIT 1',
    "SELECT person_id FROM events WHERE event IN (SELECT event FROM events WHERE event != 'a') LIMIT 1",
    'SELECT person_id FROM events PREWHERE timestamp < now() ORDER BY lower(event) DESC LIMIT 1',
    'SELECT person.properties.email AS a FROM events SAMPLE 0.1 LIMIT 1',
  ])('is read before others are joined in %s', (query) => {
    expect(isPage(query)).toBe(true);
  });

  it.each([
    'SELECT event FROM events ORDER BY timestamp DESC LIMIT 100',
    'SELECT event, person_id FROM events ORDER BY person_id LIMIT 1',
    "SELECT event FROM events WHERE person.properties.plan = 'a' ORDER BY timestamp LIMIT 1",
    'SELECT person_id FROM events ORDER BY session.$session_duration LIMIT 1',
    'SELECT person_id AS event FROM events ORDER BY event LIMIT 1',
    'SELECT DISTINCT person_id FROM events LIMIT 1',
    'SELECT DISTINCT ON (event) person_id FROM events ORDER BY event LIMIT 1',
    'SELECT person_id FROM events LIMIT 1 BY event',
    'SELECT person_id, row_number() OVER (ORDER BY timestamp) FROM events LIMIT 1',
    'SELECT person_id FROM events QUALIFY row_number() OVER (ORDER BY timestamp) = 1 LIMIT 1',
    'SELECT person_id FROM events ORDER BY timestamp LIMIT 1 WITH TIES',
    'SELECT person_id FROM events ORDER BY timestamp LIMIT 10 PERCENT',
    'SELECT person_id FROM events ORDER BY timestamp LIMIT 10 OFFSET 0.5',
    "SELECT person_id, arrayJoin(['a', 'b']) FROM events LIMIT 1",
    "SELECT person_id, one FROM events ARRAY JOIN ['a', 'b'] AS one LIMIT 1",
    'SELECT e.person_id FROM events AS e JOIN persons AS p ON p.id = e.person_id LIMIT 1',
    'SELECT count(), max(person_id) FROM events LIMIT 1',
    'SELECT person_id FROM events GROUP BY person_id LIMIT 1',
    'SELECT id, properties.email FROM persons ORDER BY created_at LIMIT 1',
  ])('is joined first in %s', (query) => {
    expect(isPage(query)).toBe(false);
  });

  it('keep only the sessions of a page', () => {
    const { sql } = compileQuery(
      'SELECT session.$session_duration FROM events ORDER BY timestamp LIMIT 5',
      project,
    );
    expect(sql).toContain(
      `in (select ("events$1"."properties" ->> $3::text) from "page$1" as "events$1") group by`,
    );
  });
});

describe('the time of a constant', () => {
  it.each([
    ["toDateTime('2026-02-01')", 'UTC', '2026-02-01T00:00:00Z'],
    ["toDateTime('2026-07-01 10:30')", 'Europe/Berlin', '2026-07-01T08:30:00Z'],
    ["toDateTime('2026-10-25 02:30:00')", 'Europe/Berlin', '2026-10-25T00:30:00Z'],
    ["toDateTime('2026-03-29T02:30:00')", 'Europe/Berlin', '2026-03-29T01:30:00Z'],
    ["toDateTime('2026-02-01 00:00:00', 'America/New_York')", 'UTC', '2026-02-01T05:00:00Z'],
    ["toDateTime64('2026-02-01', 3)", 'UTC', '2026-02-01T00:00:00Z'],
  ])('%s in %s is a parameter', (expression, timezone, expected) => {
    const of = { ...project, timezone };
    const { sql, parameters } = compileQuery(`SELECT event FROM events WHERE timestamp >= ${expression}`, of);
    expect(parameters).toContain(expected);
    expect(sql).not.toContain('regexp_match');
  });

  it.each([
    "'2026-02-31'",
    "'2026-02-01 24:00:00'",
    "'21/11/2026'",
    "'1900-01-01'",
    "'2026-02-01 10:00:00+01:00'",
    'event',
  ])('is computed by PostgreSQL of %s', (text) => {
    const { sql } = compileQuery(`SELECT event FROM events WHERE timestamp >= toDateTime(${text})`, project);
    expect(sql).toContain('regexp_match');
  });
});

describe('counts of distinct values beside counts of rows', () => {
  const isGroupedTwice = (query: string): boolean => compileQuery(query, project).sql.includes(') as seen');

  it.each([
    'SELECT event, count(), uniq(person_id) FROM events GROUP BY event',
    'SELECT uniq(event), count() AS n FROM events ORDER BY n',
    'SELECT count(DISTINCT event) FROM events HAVING count(*) > 1',
  ])('group by the values first in %s', (query) => {
    expect(isGroupedTwice(query)).toBe(true);
  });

  it.each([
    "SELECT uniq(event), countIf(event = 'a') FROM events",
    'SELECT uniq(event), uniq(person_id) FROM events',
    'SELECT uniq(event), max(timestamp), count() FROM events',
    'SELECT event, count() FROM events GROUP BY event',
    'SELECT event, uniq(person_id), count() FROM events GROUP BY ROLLUP(event)',
  ])('do not in %s', (query) => {
    expect(isGroupedTwice(query)).toBe(false);
  });
});
