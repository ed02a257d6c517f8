import type { Expression } from '../../../dialect/ast.ts';
import { buildAlias } from '../../../dialect/ast_builders.ts';

/** Assigns unique column names of letters, digits and `_`. */
export class ColumnNames {
  readonly #taken = new Set<string>();

  /** Aliases an expression with a name derived from `base`. */
  column(expression: Expression, base: string): Expression {
    return buildAlias(expression, this.take(base));
  }

  take(base: string): string {
    const normalized = base
      .normalize('NFKD')
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '_')
      .replaceAll(/^_+|_+$/g, '');
    const name = /^[a-z]/.test(normalized)
      ? normalized.slice(0, 60)
      : `column_${normalized}`.slice(0, 60).replace(/_$/, '');
    for (let number = 1; ; number++) {
      const free = number === 1 ? name : `${name}_${number}`;
      if (this.#taken.has(free)) continue;
      this.#taken.add(free);
      return free;
    }
  }
}
