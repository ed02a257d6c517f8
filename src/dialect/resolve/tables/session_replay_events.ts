import { sql, type Sql } from '../../sql.ts';
import { column, type Relation } from '../relation.ts';
import type { SourceRelation } from '../../schema.ts';
import type { Statement } from '../statement.ts';
import { TeamRelation } from '../team_relation.ts';
import { type FieldDefinitions, fieldOf, starFieldsOf } from './field_definitions.ts';
import { LazyJoins } from './lazy_joins.ts';
import { PersonDistinctIdsRelation } from './person_distinct_ids.ts';

const count = (name: string): FieldDefinitions => ({ [name]: { column: name, kind: 'integer' } });

const fields: FieldDefinitions = {
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

/** Session recordings, with the person of the distinct id. */
export class SessionReplayEventsRelation implements Relation {
  readonly name: string | null;
  readonly #statement: Statement;
  readonly #relation: TeamRelation;
  readonly #joins = new LazyJoins();

  /** @param sample the condition of SAMPLE */
  constructor(statement: Statement, source: SourceRelation, name: string | null, sample: Sql | null) {
    this.name = name;
    this.#statement = statement;
    this.#relation = new TeamRelation(statement, source, name ?? 'session_replay_events', {
      teamColumn: 'team_id',
      conditions: [sample],
    });
  }

  readonly field: Relation['field'] = (name) => {
    if (name !== 'person' && name !== 'person_id') return fieldOf(this.#relation, fields, name);
    const field = this.#personDistinctId().field(name);
    return field?.kind === 'column' ? column(field.sql, { ...field.type, nullable: true }) : field;
  };

  readonly names = (): readonly string[] => [...Object.keys(fields), 'person', 'person_id'];
  readonly star = (): readonly string[] => starFieldsOf(fields);
  readonly from = (): Sql => this.#joins.joinTo(this.#relation.from());

  #personDistinctId(): PersonDistinctIdsRelation {
    const distinctId = this.#relation.column('distinct_id');
    return this.#joins.getOrJoin('pdi', () => {
      const relation = new PersonDistinctIdsRelation(this.#statement, 'pdi');
      return { relation, condition: sql`${relation.distinctId} = ${distinctId}` };
    });
  }
}
