import type { Expression } from '../../../dialect/ast.ts';
import { buildAlias } from '../../../dialect/ast_builders.ts';

/** Gives columns names of letters, digits and `_`, and no name twice. */
export class ColumnNames {
  readonly #taken = new Set<string>();

  /** An expression under a name like this one. */
  column(expression: Expression, wanted: string): Expression {
    return buildAlias(expression, this.take(wanted));
  }

  take(wanted: string): string {
    const plain = wanted
      .normalize('NFKD')
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '_')
      .replaceAll(/^_+|_+$/g, '');
    const name = /^[a-z]/.test(plain) ? plain.slice(0, 60) : `column_${plain}`.slice(0, 60).replace(/_$/, '');
    for (let number = 1; ; number++) {
      const free = number === 1 ? name : `${name}_${number}`;
      if (this.#taken.has(free)) continue;
      this.#taken.add(free);
      return free;
    }
  }
}
