/** A value of every repeat. The distance of minimum and median shows how noisy the machine was. */
export interface Statistics {
  readonly minimum: number;
  readonly median: number;
  /** In the order of the repeats. */
  readonly all: readonly number[];
}

/** Duration of moving all rows. Rates use the median. Megabytes are those of binary COPY. */
export interface Throughput {
  readonly seconds: Statistics;
  readonly rows_per_second: number;
  readonly megabytes_per_second: number;
  /** CPU time of the clients, without PostgreSQL and the S3 server. */
  readonly cpu_seconds: Statistics;
}

/** The reason why something was not measured. */
export interface Skipped {
  readonly skipped: string;
}

/** The ordered binary COPY, discarded: nothing that reads all rows in order is faster. */
export interface FloorResult extends Throughput {
  /** The client that read it. */
  readonly client: 'psql' | 'pg';
}

/** A program that writes the rows, and how it compares with the others. A ratio below 1 means that it is faster. */
export interface Compared extends Throughput {
  /** Size of the objects or the file. */
  readonly bytes: number;
  /** Maximum resident memory; null without /proc. */
  readonly peak_memory_bytes: number | null;
  /** Requests to S3, the median; null for a local file. */
  readonly s3_requests: number | null;
  /** Time divided by that of the floor in the same repeat. */
  readonly ratio_to_floor: Statistics;
  /** Null without the shell pipeline. */
  readonly ratio_to_pipeline: Statistics | null;
  /** Null without DuckDB. */
  readonly ratio_to_duckdb: Statistics | null;
}

/** DuckDB, which writes the same rows to a local file. */
export interface DuckDbResult extends Compared {
  readonly version: string;
}

/** An export by exportd in a format. `seconds` is the time from Running to the manifest, from the journal. */
export interface ExportResult extends Compared {
  /** From the command to Completed, including the start of the backfill, the wait for open transactions and the count. */
  readonly seconds_from_command: Statistics;
  /** Rows in the manifest. */
  readonly rows: number;
  /** Resident memory of the worker before the export; null without /proc. */
  readonly idle_memory_bytes: number | null;
  /** Bytes divided by those of the pipeline. */
  readonly size_to_pipeline: number | null;
}

/** When and where a benchmark was measured. Times are in seconds. */
export interface Measurement {
  readonly started_at: string;
  /** Duration of the whole benchmark, including data and clean-up. */
  readonly seconds: number;
  readonly machine: {
    readonly cpus: number;
    readonly cpu_model: string;
    readonly memory_bytes: number;
    readonly platform: string;
    readonly node: string;
    readonly postgresql: string;
  };
  /** The load average of a minute before and after the benchmark. The second includes the benchmark. */
  readonly load: { readonly before: number; readonly after: number };
}

/** Result of `exportd bench`. Times are in seconds, sizes in bytes. */
export interface BenchResult extends Measurement {
  readonly events: number;
  /** Size of the events as binary COPY. */
  readonly copy_bytes: number;
  readonly repeat: number;
  /** Whether each worker exported the interval once before the measurement. */
  readonly warm: boolean;
  readonly floor: FloorResult;
  /** The shell pipeline, which writes the rows as gzipped JSON lines to the bucket. */
  readonly pipeline: Compared | Skipped;
  readonly duckdb: DuckDbResult | Skipped;
  readonly exports: readonly (
    | ({ readonly format: string } & ExportResult)
    | ({ readonly format: string } & Skipped)
  )[];
}

/** A table of results. */
export interface ResultTable {
  readonly title?: string;
  readonly headings: readonly string[];
  readonly rows: readonly (readonly string[])[];
}
