import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;

/** Hive 2.3's metastore with a database in memory. It creates its tables itself, except those of locks. */
public class Metastore {
    public static void main(String[] words) throws Throwable {
        TxnDbUtil.prepDb(new HiveConf());
        HiveMetaStore.main(words);
    }
}
