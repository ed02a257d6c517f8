import type { Sql } from '../../sql.ts';
import { typeOfColumn, type WarehouseTable } from '../../schema.ts';
import { column, type Relation } from '../relation.ts';
import type { Statement } from '../statement.ts';
import { TeamRelation } from '../team_relation.ts';

/** A warehouse table that the project registered. */
export class WarehouseRelation implements Relation {
  readonly name: string | null;
  readonly #table: WarehouseTable;
  readonly #relation: TeamRelation;

  constructor(statement: Statement, table: WarehouseTable, name: string | null) {
    this.name = name;
    this.#table = table;
    this.#relation = new TeamRelation(statement, table, name ?? 'warehouse', {
      teamColumn: table.teamColumn,
    });
  }

  readonly field: Relation['field'] = (name) => {
    const type = this.#table.columns.get(name);
    return type === undefined ? undefined : column(this.#relation.column(name), typeOfColumn(type, true));
  };

  readonly names = (): readonly string[] => [...this.#table.columns.keys()];
  /** Without the team column, as for the other tables. */
  readonly star = (): readonly string[] => this.names().filter((name) => name !== this.#table.teamColumn);
  readonly from = (): Sql => this.#relation.from();
}
