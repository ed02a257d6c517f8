/** A package that the console uses, as browsers load it. */
interface VendorModule {
  /** What browser code imports. */
  readonly name: string;
  /** Its file below node_modules. */
  readonly file: string;
  /** Code after the file's own, to export what a script defines. */
  readonly suffix?: string;
}

/** The packages of the import map. */
export const vendorModules: readonly VendorModule[] = [
  { name: 'preact', file: 'preact/dist/preact.mjs' },
  { name: 'preact/hooks', file: 'preact/hooks/dist/hooks.mjs' },
  { name: '@preact/signals-core', file: '@preact/signals-core/dist/signals-core.module.js' },
  { name: '@preact/signals', file: '@preact/signals/dist/signals.module.js' },
  { name: 'htm', file: 'htm/dist/htm.module.js' },
  // The package has its module only unminified, three times as large.
  { name: 'uplot', file: 'uplot/dist/uPlot.iife.min.js', suffix: '\nexport default uPlot;\n' },
];
