import type { Table } from '../../ast.ts';
import { nearestName } from '../../nearest_name.ts';
import type { Relation } from '../relation.ts';
import type { Statement } from '../statement.ts';
import { EventsRelation } from './events.ts';
import { GroupsRelation } from './groups.ts';
import { builtInTables, unsupportedTables } from './table_names.ts';
import { PersonDistinctIdsRelation } from './person_distinct_ids.ts';
import { PersonsRelation } from './persons.ts';
import { samplingCondition } from './sampling.ts';
import { SessionReplayEventsRelation } from './session_replay_events.ts';
import { SessionsRelation } from './sessions.ts';
import { WarehouseRelation } from './warehouse.ts';

const unavailableTableHint =
  'Its relation was dropped from the source, lacks the team column, or exportd has no permission to read it.';

export const tableNames = (statement: Statement): readonly string[] => [
  ...builtInTables,
  ...statement.project.schema.warehouse.keys(),
];

/** The relation of a table. @throws DialectError */
export function tableRelation(statement: Statement, table: Table): Relation {
  const path = table.path.map(({ text }) => text).join('.');
  const name = table.alias?.text ?? path;
  const { schema } = statement.project;
  const sample = tableNames(statement).includes(path) ? samplingCondition(statement, table) : null;
  switch (path) {
    case 'events':
      return new EventsRelation(statement, name, sample);
    case 'persons':
      return new PersonsRelation(statement, name, sample);
    case 'person_distinct_ids':
      return new PersonDistinctIdsRelation(statement, name, sample);
    case 'sessions':
      return new SessionsRelation(statement, name, { sample });
    case 'session_replay_events':
      if (schema.sessionReplayEvents !== null)
        return new SessionReplayEventsRelation(statement, schema.sessionReplayEvents, name, sample);
      break;
    case 'groups':
      if (schema.groups !== null) return new GroupsRelation(statement, schema.groups, name);
  }
  const warehouse = schema.warehouse.get(path);
  if (warehouse !== undefined) {
    const { columns, teamColumn } = warehouse;
    if (columns.size === 0 || (teamColumn !== null && !columns.has(teamColumn)))
      throw statement.error(`The table \`${path}\` can no longer be read.`, table, unavailableTableHint);
    return new WarehouseRelation(statement, warehouse, name);
  }
  throw unknownTable(statement, table, path);
}

function unknownTable(statement: Statement, table: Table, path: string): Error {
  if (Object.hasOwn(unsupportedTables, path))
    return statement.error(`The table \`${path}\` is not supported.`, table, unsupportedTables[path] ?? null);
  const near = nearestName(path, tableNames(statement));
  const suggestion = near === null ? null : `Perhaps you meant \`${near}\`?`;
  return statement.error(`Unknown table \`${path}\`.`, table, suggestion);
}
